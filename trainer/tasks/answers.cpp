// Follows InContextLearningGenerationExactMatchAccuracy of LLM Foundry 0.22.
#include "trainer/tasks/answers.h"

#include <algorithm>

#include "trainer/tasks/python_text.h"

namespace tycho {
namespace {

/// Replaces string.punctuation and four more quotation marks by spaces.
std::string without_punctuation(std::string_view text) {
  std::string out(text);
  for (const std::string_view quote : {"‘", "’", "´"})
    for (size_t at = out.find(quote); at != std::string::npos; at = out.find(quote, at + 1))
      out.replace(at, quote.size(), " ");
  std::replace_if(
      out.begin(), out.end(),
      [](char c) {
        return std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").find(c) != std::string_view::npos;
      },
      ' ');
  return out;
}

}  // namespace

std::string normalized_answer(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '_', ' ');
  const std::string bare = without_words(without_punctuation(python_lower(spaced)), {"a", "an", "the"});
  std::string joined;
  for (const std::string& part : python_split(bare)) joined += (joined.empty() ? "" : " ") + part;
  return joined;
}

bool is_right(const IclTaskConfig& task, std::string written, const std::vector<std::string>& answers) {
  size_t end = written.size();
  for (const std::string& stop : task.early_stopping_criteria) end = std::min(end, written.find(stop));
  written.resize(end);
  if (!task.cot_delimiter.empty())
    if (const size_t at = written.rfind(task.cot_delimiter); at != std::string::npos)
      written.erase(0, at + task.cot_delimiter.size());
  const auto cleaned = [&](const std::string& text) {
    return task.do_normalization ? normalized_answer(text) : std::string(python_strip(text));
  };
  const std::string own = cleaned(written);
  return std::any_of(answers.begin(), answers.end(),
                     [&](const std::string& answer) { return own.starts_with(cleaned(answer)); });
}

}  // namespace tycho
