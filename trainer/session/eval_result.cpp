// Sums over sets.
#include "trainer/session/eval_result.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/base/text/json_number.h"

namespace tycho {

EvalResult eval_result(double loss_sum, int64_t tokens, double seconds) {
  double loss = loss_sum / static_cast<double>(tokens);
  if (std::isnan(loss)) loss = std::abs(loss);  // NaN has a sign, which texts would show
  return {loss, std::exp(loss), tokens, seconds, loss_sum};
}

EvalResult total_of(const EvalResults& results) {
  double loss_sum = 0, seconds = 0;
  int64_t tokens = 0;
  for (const auto& [name, result] : results)
    loss_sum += result.loss_sum, tokens += result.tokens, seconds += result.seconds;
  return eval_result(loss_sum, tokens, seconds);
}

Json eval_json(const EvalResult& result) {
  Json json = Json::object();
  set_number(json, "loss", result.loss);
  set_number(json, "perplexity", result.perplexity);
  json["tokens"] = result.tokens;
  json["seconds"] = result.seconds;
  return json;
}

std::string not_finite_loss(const EvalResult& result, const std::string& what) {
  if (std::isfinite(result.loss)) return "";
  return fmt::format(
      "the loss of {} is {}: the model gives a value that is not finite for some token of it. It is recorded "
      "as "
      "null and counts as worse than every number; look for rows with unusual tokens, and for weights that "
      "have grown very large",
      what, not_finite_text(result.loss));
}

std::vector<std::string> not_finite_losses(const EvalResults& results, const std::string& checkpoint) {
  std::vector<std::string> warnings;
  for (const auto& [name, result] : results) {
    const std::string what = name.empty() ? checkpoint : fmt::format("{} on {}", checkpoint, name);
    if (const std::string warning = not_finite_loss(result, what); !warning.empty())
      warnings.push_back(warning);
  }
  return warnings;
}

}  // namespace tycho
