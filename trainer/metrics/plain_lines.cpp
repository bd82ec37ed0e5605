// Writes key=value lines.
#include "trainer/metrics/plain_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "trainer/base/bytes.h"
#include "trainer/metrics/format.h"

namespace tycho {
namespace {

std::string safe_value(const std::string& text) { return quoted_value(printable(text, true)); }

std::string share_value(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", 100 * *share) : "n/a";
}

/// "1.50 GB" as "1.50GB": a value has no spaces.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

std::string banner_lines(const RunInfo& run) {
  const std::string pins = fmt::format("{}", fmt::join(run.pins, " "));
  const std::string peak = run.peak_flops ? fmt::format("{:.1f}", *run.peak_flops / 1e12) : "n/a";
  return fmt::format(
      "run={} dir={} device={} precision={} ranks={} recipe={} pins={}\n"
      "params={} steps={} tokens={} first_step={} flops_per_token={:.4g} flops_per_token_causal={:.4g} "
      "peak_tflops={}",
      safe_value(run.run_name), safe_value(run.run_dir), safe_value(run.device), safe_value(run.precision),
      run.num_ranks, safe_value(run.recipe_hash), safe_value(pins), run.num_params, run.total_steps,
      run.total_tokens, run.first_step, run.flops_per_token_full, run.flops_per_token_causal, peak);
}

std::string step_line(const StepMetrics& m, int64_t total_steps) {
  const double wait = m.step_s > 0 ? m.data_wait_s / m.step_s : 0;
  return fmt::format(
      "step={}/{} loss={} lr={} grad_norm={} tokens_per_s={:.0f} tflops={:.4g} tflops_causal={:.4g} mfu={} "
      "mfu_causal={} mem={} wait={:.1f}% eta={} tokens={}",
      m.step, total_steps, metric_text(m.loss), short_text(m.lr), short_text(m.grad_norm), m.tokens_per_s,
      m.tflops, m.tflops_causal, share_value(m.mfu), share_value(m.mfu_causal),
      without_spaces(human_bytes(static_cast<double>(m.memory_bytes))), 100 * wait,
      without_spaces(clock_text(m.eta_s)), m.tokens);
}

std::string event_line(const std::string& kind, const std::string& text) {
  return fmt::format("event={} text={}", safe_value(kind), safe_value(text));
}

std::string end_line(const std::string& reason) { return event_line("end", reason); }

}  // namespace tycho
