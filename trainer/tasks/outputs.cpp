// Tokens back to texts: what the model saw, after all cutting.
#include "trainer/tasks/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/tasks/answers.h"

namespace tycho {
namespace {

constexpr size_t kTableRows = 20, kCellBytes = 400;

std::string text_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens, int64_t begin,
                    int64_t end) {
  return tokenizer.decode({tokens.begin() + begin, tokens.begin() + end});
}

std::string context_of(const Tokenizer& tokenizer, const Continuation& one) {
  return text_of(tokenizer, one.tokens, 0, std::ssize(one.tokens) - one.num_asked);
}

std::string continuation_of(const Tokenizer& tokenizer, const Continuation& one) {
  const int64_t length = std::ssize(one.tokens);
  return text_of(tokenizer, one.tokens, length - one.num_asked, length);
}

Json output_of(const IclQuestions& asked, const IclQuestion& question, const ContinuationScore* scores,
               const Tokenizer& tokenizer) {
  const std::vector<Continuation>& sequences = question.sequences;
  Json logprobs = Json::array();
  for (size_t i = 0; i < sequences.size(); ++i)
    logprobs.push_back(std::isfinite(scores[i].logprob) ? Json(scores[i].logprob) : Json(nullptr));
  if (asked.task.type == IclType::kLanguageModeling)
    return {{"prompt", context_of(tokenizer, sequences[0])},
            {"answer", continuation_of(tokenizer, sequences[0])},
            {"logprobs", logprobs},
            {"right", scores->is_greedy}};
  const bool is_schema = asked.task.type == IclType::kSchema;
  std::vector<std::string> choices;
  for (const Continuation& one : sequences)
    choices.push_back(is_schema ? context_of(tokenizer, one) : continuation_of(tokenizer, one));
  const int64_t chosen = chosen_by(question, scores);
  Json output = {{"choices", choices},
                 {"output", choices[static_cast<size_t>(chosen)]},
                 {"answer", choices[static_cast<size_t>(question.gold)]},
                 {"logprobs", logprobs},
                 {"right", is_right_choice(question, scores)}};
  if (is_schema)
    output["continuation"] = continuation_of(tokenizer, sequences[0]);
  else
    output["prompt"] = context_of(tokenizer, sequences[0]);
  return output;
}

/// Returns a cell of a Markdown table; of a long text its end, since prompts begin with the examples.
std::string cell(const Json& output, const char* key) {
  if (!output.contains(key)) return "";
  const Json& value = output.at(key);
  std::string text = value.is_array() && !value.empty() ? value[0].get<std::string>()
                     : value.is_string()                ? value.get<std::string>()
                                                        : "";
  size_t begin = text.size() > kCellBytes ? text.size() - kCellBytes : 0;
  while (begin < text.size() && begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    ++begin;
  std::string shown = begin > 0 ? "..." : "";
  for (const char c : text.substr(begin)) {
    if (c == '|') shown += '\\';
    shown += c == '\n' ? ' ' : c;
  }
  return shown;
}

}  // namespace

std::vector<Json> outputs_of_scores(const IclQuestions& asked, const std::vector<ContinuationScore>& scores,
                                    const Tokenizer& tokenizer) {
  std::vector<Json> outputs;
  const ContinuationScore* at = scores.data();
  for (const IclQuestion& question : asked.questions) {
    outputs.push_back(output_of(asked, question, at, tokenizer));
    at += question.sequences.size();
  }
  return outputs;
}

std::vector<Json> outputs_of_texts(const IclQuestions& asked, const std::vector<std::string>& texts,
                                   const Tokenizer& tokenizer) {
  std::vector<Json> outputs;
  for (size_t i = 0; i < texts.size(); ++i) {
    const IclQuestion& question = asked.questions[i];
    outputs.push_back({{"prompt", tokenizer.decode(question.prompt)},
                       {"output", texts[i]},
                       {"answers", question.answers},
                       {"right", is_right(asked.task, texts[i], question.answers)}});
  }
  return outputs;
}

NamedTable output_rows(const IclTaskResult& task) {
  NamedTable table = {"icl/" + task.name, "icl_outputs.jsonl", {"task", "item", "right"}, {}};
  for (size_t i = 0; i < task.outputs.size(); ++i) {
    Json row = {{"task", task.name}, {"item", i + 1}};
    row.update(task.outputs[i]);
    table.rows.push_back(std::move(row));
  }
  for (const char* column : {"prompt", "continuation", "choices", "output", "answer", "answers", "logprobs"})
    if (!task.outputs.empty() && task.outputs[0].contains(column)) table.columns.emplace_back(column);
  return table;
}

std::string output_table(const IclTaskResult& task) {
  std::string table = "| right | prompt | output | answer |\n|---|---|---|---|\n";
  for (size_t i = 0; i < std::min(task.outputs.size(), kTableRows); ++i) {
    const Json& output = task.outputs[i];
    const bool has_many = output.contains("answers"), is_schema = output.contains("continuation");
    table += fmt::format("| {} | {} | {} | {} |\n", output.at("right").get<bool>() ? "yes" : "no",
                         cell(output, is_schema ? "continuation" : "prompt"), cell(output, "output"),
                         cell(output, has_many ? "answers" : "answer"));
  }
  return table;
}

}  // namespace tycho
