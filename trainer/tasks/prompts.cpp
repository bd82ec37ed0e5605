// Follows llmfoundry/eval/datasets/in_context_learning_evaluation.py of LLM Foundry 0.22, its order of spaces
// and delimiters included.
#include "trainer/tasks/prompts.h"

#include <algorithm>
#include <map>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/tasks/few_shot.h"
#include "trainer/tasks/python_text.h"
#include "trainer/tasks/task_items.h"

namespace tycho {
namespace {

constexpr int64_t kRoomAfterThought = 10;  // tokens beyond the longest chain of thought

/// Builds the questions of items that share their examples.
class PromptBuilder {
 public:
  PromptBuilder(const IclTaskConfig& task, const Tokenizer& tokenizer, std::vector<IclItem> items,
                int64_t longest)
      : task_(task),
        tokenizer_(tokenizer),
        items_(std::move(items)),
        longest_(std::min(longest, task.max_seq_len.value_or(longest))),
        prefix_space_(tokenizer.encode(" a").size() == 1),
        thinks_(std::any_of(items_.begin(), items_.end(),
                            [](const IclItem& item) { return !item.chain_of_thought.empty(); })) {}

  IclQuestions build(const std::string& name, int64_t num_fewshot) {
    IclQuestions made{.name = name, .task = task_};
    if (task_.type == IclType::kGeneration) made.max_new_tokens = max_answer_tokens();
    PythonRandom random(static_cast<uint64_t>(task_.fewshot_random_seed));
    for (size_t i = 0; i < items_.size(); ++i) {
      place_ = fmt::format("item {} of {}", i + 1, name);
      const std::string shown = examples(num_fewshot, static_cast<int64_t>(i), random);
      made.questions.push_back(question(items_[i], shown, made.max_new_tokens));
    }
    return made;
  }

 private:
  std::string examples(int64_t count, int64_t index, PythonRandom& random) const {
    std::string text = task_.prompt_string;
    if (count == 0) return text;
    for (const int64_t one : few_shot_examples(std::ssize(items_), count, index, random)) {
      const IclItem& item = items_[static_cast<size_t>(one)];
      text += task_.type == IclType::kSchema
                  ? task_.question_prelude + (text.empty() ? "" : task_.example_delimiter) +
                        item.choices[static_cast<size_t>(item.gold)] + task_.continuation_delimiter +
                        item.answer
                  : context_after(text, item) + shown_answer(item);
    }
    return text;
  }
  std::string context_after(const std::string& before, const IclItem& item) const {
    return (before.empty() ? "" : task_.example_delimiter) + task_.question_prelude + item.context +
           task_.continuation_delimiter;
  }
  std::string shown_answer(const IclItem& item) const {
    if (task_.type == IclType::kMultipleChoice) return item.choices[static_cast<size_t>(item.gold)];
    return task_.type == IclType::kGeneration ? with_thought(item, item.answer) : item.answer;
  }
  std::string with_thought(const IclItem& item, const std::string& answer) const {
    return thinks_ ? item.chain_of_thought + task_.cot_delimiter + answer : answer;
  }

  IclQuestion question(const IclItem& item, const std::string& shown, int64_t max_new_tokens) const {
    IclQuestion made{.gold = item.gold};
    if (task_.type == IclType::kSchema) {
      const std::vector<int32_t> asked = asked_tokens(item.answer);
      for (const std::string& choice : item.choices)
        made.sequences.push_back(sequence(shown, schema_context(shown, choice), asked));
      return made;
    }
    const std::string context(python_rstrip(context_after(shown, item)));
    if (task_.type == IclType::kGeneration) {
      made.prompt = trimmed(prompt_tokens(shown, context), longest_ - max_new_tokens);
      made.answers = item.aliases;
      return made;
    }
    const bool chooses = task_.type == IclType::kMultipleChoice;
    for (const std::string& answer : chooses ? item.choices : std::vector<std::string>{item.answer})
      made.sequences.push_back(sequence(shown, context, asked_tokens(answer)));
    return made;
  }
  std::string schema_context(const std::string& shown, const std::string& choice) const {
    if (shown.empty()) return task_.question_prelude + choice;
    return task_.question_prelude + task_.example_delimiter + choice +
           std::string(python_rstrip(task_.continuation_delimiter));
  }

  /// Returns the tokens of the text before the item, encoded as a whole text without its end token, followed
  /// by the item's.
  std::vector<int32_t> prompt_tokens(const std::string& shown, const std::string& context) const {
    std::vector<int32_t> tokens = whole_text(shown);
    const std::string eos = find_eos_token(tokenizer_);
    if (tokens.size() > 1 && !eos.empty() && tokens.back() == tokenizer_.find(eos)) tokens.pop_back();
    const std::vector<int32_t> own = tokenizer_.encode(context);
    tokens.insert(tokens.end(), own.begin(), own.end());
    if (tokens.empty())
      fail(ExitCode::kUnusable, "[icl] {} has no context to ask about: give it one, or a prompt_string",
           place_);
    return tokens;
  }
  std::vector<int32_t> whole_text(const std::string& text) const {
    std::vector<int32_t> tokens = tokenizer_.text_begin();
    for (const std::vector<int32_t>& part : {tokenizer_.encode(text), tokenizer_.text_end()})
      tokens.insert(tokens.end(), part.begin(), part.end());
    return tokens;
  }
  std::vector<int32_t> asked_tokens(const std::string& answer) const {
    return tokenizer_.encode(prefix_space_ && !answer.starts_with(' ') ? " " + answer : answer);
  }
  Continuation sequence(const std::string& shown, const std::string& context,
                        const std::vector<int32_t>& asked) const {
    if (asked.empty()) fail(ExitCode::kUnusable, "[icl] {} has an answer without tokens", place_);
    Continuation made{trimmed(prompt_tokens(shown, context), longest_ - std::ssize(asked)),
                      std::ssize(asked)};
    made.tokens.insert(made.tokens.end(), asked.begin(), asked.end());
    return made;
  }
  /// Returns the end of a context that fits.
  std::vector<int32_t> trimmed(std::vector<int32_t> context, int64_t room) const {
    if (room < 1)
      fail(ExitCode::kUnusable,
           "[icl] {} has an answer of {} tokens, which leaves no room for a context in {}: raise "
           "max_seq_len, or "
           "take the item out",
           place_, longest_ - room, longest_);
    if (std::ssize(context) > room) context.erase(context.begin(), context.end() - room);
    return context;
  }

  int64_t max_answer_tokens() const {
    int64_t most = 0;
    for (const IclItem& item : items_)
      for (const std::string& answer : item.aliases)
        most = std::max(most, std::ssize(whole_text(with_thought(item, answer))));
    return std::max<int64_t>(1, most + (task_.cot_delimiter.empty() ? 0 : kRoomAfterThought));
  }

  const IclTaskConfig& task_;
  const Tokenizer& tokenizer_;
  std::vector<IclItem> items_;
  int64_t longest_;
  bool prefix_space_, thinks_;
  std::string place_;
};

void check_tokens(const IclQuestions& made, int64_t vocab_size) {
  const auto check = [&](const std::vector<int32_t>& tokens) {
    for (const int32_t id : tokens)
      if (id >= vocab_size)
        fail(ExitCode::kUnusable,
             "[icl] the tokenizer gives token {} for {}, and the model's vocabulary has {}: use the model's "
             "tokenizer",
             id, made.name, vocab_size);
  };
  for (const IclQuestion& question : made.questions) {
    check(question.prompt);
    for (const Continuation& sequence : question.sequences) check(sequence.tokens);
  }
}

}  // namespace

std::vector<IclQuestions> icl_questions(const IclTaskConfig& task, const Tokenizer& tokenizer,
                                        int64_t vocab_size, int64_t longest) {
  std::map<std::string, std::vector<IclItem>> by_category;  // without categories: one, ""
  for (IclItem& item : read_task_items(task)) by_category[item.category].push_back(std::move(item));
  std::vector<IclQuestions> made;
  for (const int64_t num_fewshot : task.num_fewshot) {
    for (const auto& [category, items] : by_category) {
      std::string name = fmt::format("{}/{}-shot", task.label, num_fewshot);
      if (task.has_categories) name += "/" + category;
      made.push_back(PromptBuilder(task, tokenizer, items, longest).build(name, num_fewshot));
      check_tokens(made.back(), vocab_size);
    }
  }
  return made;
}

}  // namespace tycho
