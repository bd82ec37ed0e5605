// Reserves the names that metrics over all sets use.
#include "trainer/recipe/eval_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace tycho {
namespace {

/// Names that ctx.eval, metrics and tables use next to the names of sets.
constexpr std::array kOfAllSets = {"loss",    "perplexity", "bits_per_byte", "tokens",
                                   "seconds", "step",       "best",          "total"};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

}  // namespace

std::string eval_name_problem(const std::string& name) {
  if (std::any_of(kOfAllSets.begin(), kOfAllSets.end(), [&](const char* one) { return name == one; }))
    return fmt::format("no set can be called {0}: eval.{0} is a metric over all sets; choose another name",
                       name);
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character))
    return fmt::format(
        "\"{}\" is not a valid name of a set, which is part of metrics such as eval.NAME.loss: write "
        "letters, digits, \"_\" and \"-\"",
        name);
  return "";
}

std::vector<std::string> eval_metrics(const EvalData& sets, bool has_tokenizer) {
  std::vector<std::string> metrics, figures = {"loss", "perplexity"};
  if (sets.empty()) return metrics;
  if (has_tokenizer) figures.emplace_back("bits_per_byte");
  for (const std::string& figure : figures) metrics.push_back(fmt::format("eval.{}", figure));
  for (const auto& [name, data] : sets)
    for (const std::string& figure : figures) metrics.push_back(fmt::format("eval.{}.{}", name, figure));
  return metrics;
}

std::string why_not_measured(const std::string& metric, const std::vector<std::string>& known) {
  const auto is_bits = [](const std::string& one) { return one.ends_with(".bits_per_byte"); };
  if (!is_bits(metric) || std::any_of(known.begin(), known.end(), is_bits)) return "";
  return "; bytes are known only with the tokenizer of the data: set tokenizer = \"PATH/tokenizer.json\"";
}

}  // namespace tycho
