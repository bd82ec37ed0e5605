// The questions to a model and its answers, item by item, for people who inspect its mistakes.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/metrics/named_table.h"
#include "trainer/tasks/continuation.h"
#include "trainer/tasks/prompts.h"
#include "trainer/tasks/result.h"

namespace tycho {

/// Returns one object for each item of every type but generation: "right", "logprobs" of the compared
/// choices, and as texts "prompt" (with the examples), "choices", "output" (the chosen one) and "answer" (the
/// right one). Language modeling has only "prompt" and "answer"; schemas, whose choices are contexts, also
/// have "continuation".
std::vector<Json> outputs_of_scores(const IclQuestions& asked, const std::vector<ContinuationScore>& scores,
                                    const Tokenizer& tokenizer);
/// Returns one object for each item of generation: "right", "prompt", "output" (the written text) and
/// "answers" (the right ones).
std::vector<Json> outputs_of_texts(const IclQuestions& asked, const std::vector<std::string>& texts,
                                   const Tokenizer& tokenizer);

/// Returns all outputs for a logger; "item" counts from 1.
NamedTable output_rows(const IclTaskResult& task);
/// Returns the first outputs as a Markdown table, for loggers that show texts.
std::string output_table(const IclTaskResult& task);

}  // namespace tycho
