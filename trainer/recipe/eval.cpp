// The rules between the keys of evaluations.
#include "trainer/recipe/eval.h"

#include "trainer/base/config_problems.h"
#include "trainer/recipe/eval_sets.h"

namespace tycho {

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

}  // namespace tycho
