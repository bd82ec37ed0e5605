// The rules of evaluations. Names that metrics over all sets use are reserved.
#include "trainer/recipe/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "trainer/base/config_problems.h"

namespace tycho {
namespace {

/// Names that ctx.eval, metrics and tables use next to the names of sets.
constexpr std::array kOfAllSets = {"loss",    "perplexity", "bits_per_byte", "tokens",
                                   "seconds", "step",       "best",          "total"};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

}  // namespace

void check(const EvalConfig& eval, const EvalData& sets, ConfigProblems& problems) {
  if (sets.empty() && (eval.every || eval.first || eval.batches > 0))
    problems.add(eval.every   ? "eval.every"
                 : eval.first ? "eval.first"
                              : "eval.batches",
                 "has no effect without eval_data; set eval_data.val = t.data.mds {{ local_dir = ..., split "
                 "= \"val\" }}");
}

void check_sets(const EvalData& sets, const DataConfig& train_data, int64_t vocab_size, bool has_tokenizer,
                ConfigProblems& problems) {
  for (const auto& [name, data] : sets) {
    const std::string path = "eval_data." + name;
    check(data, path, vocab_size, has_tokenizer, problems);
    const auto* mds = std::get_if<MdsConfig>(&data.value);
    if (mds == nullptr) continue;
    if (mds->epoch_size)
      problems.add(path + ".epoch_size", "has no effect in an evaluation; use eval.batches");
    for (size_t i = 0; i < mds->streams.size(); ++i)
      if (const StreamConfig& stream = mds->streams[i]; stream.proportion || stream.repeat || stream.choose)
        problems.add(
            fmt::format("{}.streams[{}]", path, i + 1),
            "has a proportion, repeat or choose, which have no effect in an evaluation: it takes every "
            "sample once");
    if (const auto* train = std::get_if<MdsConfig>(&train_data.value))
      check_same_documents(*train, *mds, path, problems);
  }
}

void check_names(const EvalData& sets, ConfigProblems& problems) {
  for (const auto& [name, data] : sets)
    if (const std::string problem = eval_name_problem(name); !problem.empty())
      problems.add("eval_data." + name, "{}", problem);
}

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
