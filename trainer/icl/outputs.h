// What a model was asked and what it answered, item by item, for people who look at its mistakes.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/icl/continuation.h"
#include "trainer/icl/prompts.h"
#include "trainer/icl/result.h"
#include "trainer/metrics/named_table.h"

namespace tycho {

/// Of every type but generation, one object for each item: "right", "logprobs" of what was compared, and as
/// texts "prompt" (with the examples), "choices", "output" (the chosen one) and "answer" (the right one); of
/// language modeling "prompt" and "answer"; of schemas, whose choices are contexts, "continuation" too.
std::vector<Json> outputs_of_scores(const IclQuestions& asked, const std::vector<ContinuationScore>& scores,
                                    const Tokenizer& tokenizer);
/// Of generation: "right", "prompt", "output" (what was written) and "answers" (the right ones).
std::vector<Json> outputs_of_texts(const IclQuestions& asked, const std::vector<std::string>& texts,
                                   const Tokenizer& tokenizer);

/// All of them, for a logger: "item" counts from 1.
NamedTable output_rows(const IclTaskResult& task);
/// The first of them as a table in Markdown, for loggers that show texts.
std::string output_table(const IclTaskResult& task);

}  // namespace tycho
