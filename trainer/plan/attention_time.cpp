// Rates by head width and tokens, as bench/roofline.py has them.
#include "trainer/plan/attention_time.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/kernels/twins/kernel_work.h"
#include "trainer/layout/gpu_attention.h"

namespace tycho {
namespace {

constexpr double kPeakOfH100 = 989.5e12;

/// TFLOP/s of causal attention on an H100.
struct Rates {
  int64_t tokens;
  double flash_forward, flash_backward, cudnn_forward, cudnn_backward, flash_3_forward, flash_3_backward;
};
/// The part of flash_3_backward that is left in a fixed order.
constexpr double kFlash3InOrder = 0.92;
// docs/gpu.md says where they come from.
constexpr std::array<Rates, 4> kNarrow = {{
    {1024, 230, 170, 280, 240, 310, 270},
    {2048, 262, 206, 334, 308, 371, 329},
    {4096, 280, 240, 360, 350, 416, 380},
    {8192, 295, 264, 379, 397, 460, 434},
}};
constexpr std::array<Rates, 4> kWide = {{
    {1024, 270, 190, 370, 300, 400, 320},
    {2048, 300, 227, 430, 363, 504, 391},
    {4096, 330, 265, 500, 420, 590, 455},
    {8192, 306, 274, 566, 470, 660, 514},
}};

/// Returns the rates of the nearest known case.
const Rates& rates_of(int64_t head_dim, int64_t tokens) {
  const auto& known = head_dim <= 64 ? kNarrow : kWide;
  const auto distance = [&](const Rates& one) {
    return std::abs(std::log(static_cast<double>(one.tokens) / static_cast<double>(tokens)));
  };
  return *std::min_element(known.begin(), known.end(),
                           [&](const Rates& a, const Rates& b) { return distance(a) < distance(b); });
}

/// Returns how much longer the blocks of a fixed order take than waves that are full.
double unfilled_waves(const AttentionCalls& calls) {
  const int64_t pairs = calls.sequences * calls.heads, sms = calls.num_sms;
  const int64_t blocks = (sms + pairs - 1) / pairs * pairs, waves = (blocks + sms - 1) / sms;
  return static_cast<double>(waves * sms) / static_cast<double>(blocks);
}

}  // namespace

double attention_order_s(const TrainConfig& config, const DecoderSpec& spec, const AttentionCalls& calls) {
  const bool bf16 = config.precision == Precision::kBf16;
  if (gpu_attention_obstacle(spec, bf16, config.seq_len, config.parallel.cp) != nullptr) return 0;
  const bool any_order = !config.attention.deterministic;
  const bool flash_3 = config.attention.flash == 3 &&
                       flash_3_attention_obstacle(spec, bf16, config.seq_len, config.parallel.cp) == nullptr;
  if (any_order && !flash_3 &&
      cudnn_attention_obstacle(spec, bf16, config.seq_len, config.parallel.cp) != nullptr)
    return 0;
  const Rates& rates = rates_of(spec.attention.head_dim, config.seq_len);
  const TokenSpan sequence = {0, config.seq_len};
  const auto elements = static_cast<double>(calls.sequences * calls.heads * spec.attention.head_dim);
  double seconds = 0;
  for (int64_t i = 0; i < spec.layers; ++i) {
    const double work = elements * seen_pairs(sequence, sequence, spec.block(i).window) /
                        static_cast<double>(config.parallel.cp);
    const double forward = kAttentionFlops * work, backward = kAttentionBackwardFlops * work;
    const double times = config.recompute.of(i) == Recompute::kFull ? 2 : 1;
    if (flash_3)
      seconds += times * forward * (1 / rates.flash_3_forward - 1 / rates.flash_forward) +
                 backward * (1 / (rates.flash_3_backward * (any_order ? 1 : kFlash3InOrder)) -
                             1 / rates.flash_backward);
    else if (any_order)
      seconds += times * forward * (1 / rates.cudnn_forward - 1 / rates.flash_forward) +
                 backward * (1 / rates.cudnn_backward - 1 / rates.flash_backward);
    else
      seconds += backward * (unfilled_waves(calls) - 1) / rates.flash_backward;
  }
  return seconds / 1e12 * (kPeakOfH100 / calls.peak);
}

}  // namespace tycho
