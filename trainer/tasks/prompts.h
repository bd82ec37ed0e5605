// Tasks as tokens: what a model is asked for each item, cut and encoded as LLM Foundry does.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/icl.h"
#include "trainer/tasks/continuation.h"

namespace tycho {

/// One encoded item.
struct IclQuestion {
  std::vector<Continuation> sequences;  // one for each choice; one for language modeling; none for generation
  int64_t gold = 0;                     // index of the right choice
  std::vector<int32_t> prompt;          // of generation
  std::vector<std::string> answers;     // right answers, of generation
};

/// The questions of a task with one number of examples, in one category.
struct IclQuestions {
  std::string name;  // "LABEL/5-shot", "LABEL/5-shot/CATEGORY"
  IclTaskConfig task;
  std::vector<IclQuestion> questions;
  int64_t max_new_tokens = 0;  // of generation
};

/// Reads a task and encodes it for each of its numbers of examples. `longest` is the number of tokens that
/// the model takes, `vocab_size` that of its vocabulary. Throws Error (kUnusable) like read_task_items, and
/// for an item without context, whose answer has no tokens, or whose answer leaves no space for its context.
std::vector<IclQuestions> icl_questions(const IclTaskConfig& task, const Tokenizer& tokenizer,
                                        int64_t vocab_size, int64_t longest);

}  // namespace tycho
