// Products and casts as models/fp8_linear.h has them: each use of an operand casts it, x in the kernel
// before.
#include "trainer/plan/fp8_time.h"

#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/fp8_layers.h"

namespace tycho {
namespace {

/// Time of a product in bf16 over its time in fp8.
constexpr double kSpeedup = 1.7;
/// Bytes of a cast, for each element: of rows, and of columns or whole matrices, which are read twice.
constexpr double kRowBytes = 3, kOtherBytes = 5;
/// Bytes of a code that is transposed.
constexpr double kTurnBytes = 2;
/// Bytes of an element that a cast does not read where the element is still in a register.
constexpr double kReadBytes = 2;

/// True if the forward pass casts x in the kernel that computes it: models/fp8_linear.h, input_cast.
bool casts_along(const Fp8Product& product, const Fp8Calls& calls) {
  return product.cast_along && (calls.tp == 1 || !(product.cuts_inputs || calls.cuts_tokens));
}

struct Work {
  double flops = 0, bytes = 0;
};

/// Returns the work of a product of the forward pass, and of those of its gradients.
Work work_of(const Fp8Product& product, Recompute mode, bool trains_weight, bool in_out,
             const Fp8Calls& calls) {
  const auto tp = static_cast<double>(calls.tp), N = calls.tokens,
             K = static_cast<double>(product.inputs) / (product.cuts_inputs ? tp : 1),
             M = static_cast<double>(product.all_outputs()) / (product.cuts_inputs ? 1 : tp);
  const double forwards = product.recompute != Recompute::kNone && product.recompute <= mode ? 2 : 1;
  const bool dw = trains_weight && product.recipe != Fp8Recipe::kRowwiseWithGwHp;
  const double row_bytes = product.recipe == Fp8Recipe::kTensorwise ? kOtherBytes : kRowBytes;
  const double x_bytes = row_bytes - (casts_along(product, calls) ? kReadBytes : 0);
  const double w_bytes = calls.has_codes ? (in_out ? kTurnBytes : 0) : row_bytes,
               turned_bytes = calls.has_codes ? (in_out ? 0 : kTurnBytes) : kOtherBytes;
  const double casts = forwards * (x_bytes * N * K + w_bytes * M * K) +  // x and w
                       row_bytes * N * M + turned_bytes * M * K +        // dy and w, transposed
                       (dw ? kOtherBytes * (N * K + N * M) : 0);         // x and dy, transposed
  return {2 * N * M * K * (forwards + 1 + (dw ? 1 : 0)), casts};
}

}  // namespace

double fp8_added_s(const TrainConfig& config, const DecoderSpec& spec, const Fp8Calls& calls) {
  if (!spec.fp8.is_used()) return 0;
  Work all;
  for (int64_t i = 0; i < spec.layers; ++i)
    for (const Fp8Product& product : block_fp8_layers(spec, i).products) {
      const Work work =
          work_of(product, config.recompute.of(i), !config.model.lora.is_used(), spec.in_out, calls);
      all.flops += work.flops, all.bytes += work.bytes;
    }
  return all.bytes / calls.bytes_per_s - all.flops / calls.flops_per_s * (1 - 1 / kSpeedup);
}

}  // namespace tycho
