// Task after task; a task's questions are asked together.
#include "trainer/eval/icl_evaluator.h"

#include <algorithm>
#include <chrono>

#include "trainer/base/seconds_since.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/eval/greedy_writer.h"
#include "trainer/tasks/outputs.h"

namespace tycho {
namespace {

int32_t eos_of(const Tokenizer& tokenizer) {
  const std::string token = find_eos_token(tokenizer);
  return token.empty() ? -1 : tokenizer.find(token);
}

/// Returns text for display, without special tokens.
std::string text_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<int32_t> shown;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(shown),
               [&](int32_t id) { return id < tokenizer.size() && !tokenizer.is_special(id); });
  return tokenizer.decode(shown);
}

}  // namespace

IclEvaluator::IclEvaluator(const IclConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                           int64_t vocab_size, int64_t longest)
    : gauntlet_(config.gauntlet),
      outputs_(config.outputs),
      tokenizer_(std::move(tokenizer)),
      eos_(eos_of(*tokenizer_)) {
  for (const IclTaskConfig& task : config.tasks)
    for (IclQuestions& one : icl_questions(task, *tokenizer_, vocab_size, longest))
      tasks_.push_back(std::move(one));
}

std::optional<IclResults> IclEvaluator::evaluate(const AskedModel& asked,
                                                 const std::atomic<int>& stop) const {
  const auto start = std::chrono::steady_clock::now();
  IclResults results;
  for (const IclQuestions& questions : tasks_) {
    std::optional<IclTaskResult> result = ask(asked, questions, stop);
    if (!result) return std::nullopt;
    results.tasks.push_back(std::move(*result));
  }
  add_gauntlet(gauntlet_, results);
  results.seconds = seconds_since(start);
  return results;
}

std::optional<IclTaskResult> IclEvaluator::ask(const AskedModel& asked, const IclQuestions& questions,
                                               const std::atomic<int>& stop) const {
  if (questions.task.type == IclType::kGeneration) {
    const auto texts = write(asked, questions, stop);
    if (!texts) return std::nullopt;
    IclTaskResult result = result_of_texts(questions, *texts);
    if (outputs_) result.outputs = outputs_of_texts(questions, *texts, *tokenizer_);
    return result;
  }
  std::vector<Continuation> sequences;
  for (const IclQuestion& question : questions.questions)
    sequences.insert(sequences.end(), question.sequences.begin(), question.sequences.end());
  const auto scores = score(asked, sequences, stop);
  if (!scores) return std::nullopt;
  IclTaskResult result = result_of_scores(questions, *scores);
  if (outputs_) result.outputs = outputs_of_scores(questions, *scores, *tokenizer_);
  return result;
}

std::optional<std::vector<std::string>> IclEvaluator::write(const AskedModel& asked,
                                                            const IclQuestions& questions,
                                                            const std::atomic<int>& stop) const {
  std::vector<std::vector<int32_t>> prompts;
  for (const IclQuestion& question : questions.questions) prompts.push_back(question.prompt);
  const std::vector<std::string>& stops = questions.task.early_stopping_criteria;
  const IsWholeAnswer is_whole = [&](const std::vector<int32_t>& written) {
    if (written.back() == eos_) return true;
    if (stops.empty()) return false;
    const std::string text = text_of(*tokenizer_, written);
    return std::any_of(stops.begin(), stops.end(),
                       [&](const std::string& one) { return text.find(one) != std::string::npos; });
  };
  const auto written = write_greedily(asked, prompts, questions.max_new_tokens, is_whole, stop);
  if (!written) return std::nullopt;
  std::vector<std::string> texts;
  for (const std::vector<int32_t>& ids : *written) texts.push_back(text_of(*tokenizer_, ids));
  return texts;
}

}  // namespace tycho
