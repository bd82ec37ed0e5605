// Whether a text that a model wrote is a right answer.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/icl/config.h"

namespace tycho {

/// Without case, punctuation, the articles of English and more than single spaces, as TriviaQA compares.
std::string normalized_answer(std::string_view text);

/// What is `written`, cut before the first of early_stopping_criteria and after the last cot_delimiter,
/// begins with one of the `answers`; all of them normalized if the task says so, else stripped. An answer of
/// which nothing is left is always right, as in LLM Foundry.
bool is_right(const IclTaskConfig& task, std::string written, const std::vector<std::string>& answers);

}  // namespace tycho
