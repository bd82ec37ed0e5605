// Decides whether a text written by a model is a right answer.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/recipe/icl.h"

namespace tycho {

/// Returns the text in lower case, without punctuation, English articles and repeated spaces, the way
/// TriviaQA compares.
std::string normalized_answer(std::string_view text);

/// Returns true when `written`, cut before the first of early_stopping_criteria and after the last
/// cot_delimiter, begins with one of the `answers`; all normalized if the task says so, else stripped. An
/// answer that becomes empty is always right, like in LLM Foundry.
bool is_right(const IclTaskConfig& task, std::string written, const std::vector<std::string>& answers);

}  // namespace tycho
