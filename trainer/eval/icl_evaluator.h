// In-context evaluation of a model: all tasks, by all ranks.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/eval/scorer.h"
#include "trainer/recipe/icl.h"
#include "trainer/tasks/prompts.h"
#include "trainer/tasks/result.h"

namespace tycho {

/// Evaluates tasks. Keeps the encoded tasks, so that they are read once in a run.
class IclEvaluator {
 public:
  /// Reads and encodes all tasks. `longest` is the number of tokens that the model takes. Throws Error like
  /// icl_questions, so that an invalid task is reported before the first pass.
  IclEvaluator(const IclConfig& config, std::shared_ptr<const Tokenizer> tokenizer, int64_t vocab_size,
               int64_t longest);

  /// Returns the same results on every rank, whatever the number of ranks. Changes no state of training.
  /// Returns nullopt when `stop` is not 0 on some rank before the end. Collective.
  std::optional<IclResults> evaluate(const AskedModel& asked, const std::atomic<int>& stop) const;

 private:
  std::optional<IclTaskResult> ask(const AskedModel& asked, const IclQuestions& questions,
                                   const std::atomic<int>& stop) const;
  std::optional<std::vector<std::string>> write(const AskedModel& asked, const IclQuestions& questions,
                                                const std::atomic<int>& stop) const;

  GauntletConfig gauntlet_;
  bool outputs_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t eos_;  // -1 for none
  std::vector<IclQuestions> tasks_;
};

}  // namespace tycho
