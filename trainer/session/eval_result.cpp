// Sums over sets.
#include "trainer/session/eval_result.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "trainer/base/text/json_number.h"

namespace tycho {

EvalResult eval_result(const EvalSums& sums, double seconds) {
  const auto mean = [&](double sum) {
    const double value = sum / sums.weight;
    return std::isnan(value) ? std::abs(value) : value;  // NaN has a sign, which texts would show
  };
  const auto cross_entropy = sums.named.find("cross_entropy");
  const double loss = mean(sums.loss);
  const double entropy = cross_entropy == sums.named.end() ? loss : mean(cross_entropy->second);
  return {loss, std::exp(entropy), sums.tokens, seconds, sums};
}

std::optional<double> EvalResult::bits_per_byte() const {
  if (!(sums.bytes > 0)) return std::nullopt;
  const double bits = sums.nats / (std::numbers::ln2 * sums.bytes);
  return std::isnan(bits) ? std::abs(bits) : bits;
}

std::map<std::string, double> EvalResult::means() const {
  std::map<std::string, double> means;
  for (const auto& [name, sum] : sums.named) means[name] = sum / sums.weight;
  return means;
}

EvalResult total_of(const EvalResults& results) {
  EvalSums sums;
  double seconds = 0;
  for (const auto& [name, result] : results) {
    sums.loss += result.sums.loss, sums.weight += result.sums.weight, sums.tokens += result.sums.tokens;
    sums.nats += result.sums.nats, sums.bytes += result.sums.bytes;
    for (const auto& [term, sum] : result.sums.named) sums.named[term] += sum;
    seconds += result.seconds;
  }
  return eval_result(sums, seconds);
}

Json eval_json(const EvalResult& result) {
  Json json = Json::object();
  set_number(json, "loss", result.loss);
  set_number(json, "perplexity", result.perplexity);
  if (const auto bits = result.bits_per_byte()) set_number(json, "bits_per_byte", *bits);
  json["tokens"] = result.tokens;
  json["seconds"] = result.seconds;
  for (const auto& [name, mean] : result.means()) set_number(json, name, mean);
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
