// Prompts, token by token, against LLM Foundry's data sets, and items that cannot be asked.
#include "trainer/tasks/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/tasks/icl_golden.h"
#include "trainer/base/error.h"
#include "trainer/tasks/task_items.h"

namespace tycho {
namespace {

constexpr int64_t kVocab = 340, kLongest = 96;

void expect_same(const IclQuestion& ours, const Json& theirs, const std::string& what) {
  if (theirs.contains("prompt")) {
    EXPECT_EQ(ours.prompt, theirs.at("prompt").get<std::vector<int32_t>>()) << what;
    std::vector<std::string> answers = ours.answers;
    std::sort(answers.begin(), answers.end());
    answers.erase(std::unique(answers.begin(), answers.end()), answers.end());
    EXPECT_EQ(answers, theirs.at("answers").get<std::vector<std::string>>()) << what;
    return;
  }
  EXPECT_EQ(ours.gold, theirs.at("gold").get<int64_t>()) << what;
  ASSERT_EQ(ours.sequences.size(), theirs.at("sequences").size()) << what;
  for (size_t i = 0; i < ours.sequences.size(); ++i) {
    EXPECT_EQ(ours.sequences[i].tokens, theirs["sequences"][i].at("tokens").get<std::vector<int32_t>>())
        << what;
    EXPECT_EQ(ours.sequences[i].num_asked, theirs["sequences"][i].at("answer").get<int64_t>()) << what;
  }
}

TEST(Prompts, AreThoseOfLlmFoundry) {
  size_t items = 0;
  for (const Json& entry : icl_golden("prompts.json")) {
    const bool plain = entry.at("tokenizer") == "plain";
    const auto tokenizer =
        load_tokenizer(kIclGoldens + (plain ? "/model/tokenizer.json" : "/tokenizer_bos.json"));
    const std::vector<IclQuestions> made = icl_questions(golden_task(entry), *tokenizer, kVocab, kLongest);
    ASSERT_EQ(made.size(), 1u);
    const std::string what = made[0].name + (plain ? "" : ", with a beginning of texts");
    EXPECT_EQ(made[0].max_new_tokens, entry.value("max_new_tokens", int64_t{0})) << what;
    ASSERT_EQ(made[0].questions.size(), entry.at("items").size()) << what;
    for (size_t i = 0; i < made[0].questions.size(); ++i, ++items)
      expect_same(made[0].questions[i], entry["items"][i], what + ", item " + std::to_string(i + 1));
  }
  EXPECT_GT(items, 500u);
}

/// What make_published_goldens.py makes of lists of tokens.
uint64_t fingerprint(const IclQuestion& question) {
  uint64_t number = 0;
  const auto add = [&](int64_t token) {
    number = number * 6364136223846793005U + static_cast<uint64_t>(token + 2);
  };
  const auto add_all = [&](const std::vector<int32_t>& tokens) {
    for (const int32_t token : tokens) add(token);
    add(-1);
  };
  if (question.sequences.empty()) add_all(question.prompt);
  for (const Continuation& one : question.sequences) add_all(one.tokens);
  return number;
}

// TYCHO_PUBLISHED_TASKS names what make_published_goldens.py --repo wrote from the published files.
TEST(Prompts, OfPublishedTasksAreThoseOfLlmFoundry) {
  const char* given = std::getenv("TYCHO_PUBLISHED_TASKS");
  const std::string folder = given != nullptr ? given : kIclGoldens + "/published";
  const auto tokenizer = load_tokenizer(kIclGoldens + "/model/tokenizer.json");
  size_t items = 0;
  for (const Json& entry : parse_json(read_file(folder + "/prompts.json"), "prompts.json")) {
    const auto made = icl_questions(golden_task(entry, folder), *tokenizer, kVocab, entry.at("max_seq_len"));
    const Json& parts = entry.at("parts");
    ASSERT_EQ(made.size(), parts.size()) << entry.at("case");
    for (size_t part = 0; part < parts.size(); ++part) {
      const IclQuestions& asked = made[part];
      const auto category = parts[part].at("category").get<std::string>();
      EXPECT_TRUE(asked.name.ends_with("-shot" + (category.empty() ? "" : "/" + category))) << asked.name;
      EXPECT_EQ(asked.max_new_tokens, parts[part].value("max_new_tokens", int64_t{0})) << asked.name;
      const Json& wanted = parts[part].at("fingerprints");
      ASSERT_EQ(asked.questions.size(), wanted.size()) << asked.name;
      expect_same(asked.questions[0], parts[part].at("first"), asked.name);
      for (size_t i = 0; i < wanted.size(); ++i, ++items)
        EXPECT_EQ(fingerprint(asked.questions[i]), wanted[i].get<uint64_t>())
            << asked.name << ", item " << i + 1;
    }
  }
  EXPECT_GT(items, 700u);
}

TEST(Prompts, CategoriesAreAskedByThemselves) {
  const auto tokenizer = load_tokenizer(kIclGoldens + "/model/tokenizer.json");
  const IclTaskConfig task = {.label = "colours",
                              .path = kIclGoldens + "/tasks/colours.jsonl",
                              .type = IclType::kMultipleChoice,
                              .num_fewshot = {0, 2},
                              .has_categories = true};
  std::vector<std::string> names;
  for (const IclQuestions& one : icl_questions(task, *tokenizer, kVocab, kLongest)) {
    names.push_back(one.name);
    EXPECT_EQ(one.questions.size(), 10u);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"colours/0-shot/nature", "colours/0-shot/things",
                                             "colours/0-shot/Ähnliches", "colours/2-shot/nature",
                                             "colours/2-shot/things", "colours/2-shot/Ähnliches"}));
}

/// What is said of a task with these lines.
std::string refusal(IclType type, const std::string& lines, int64_t longest = kLongest,
                    bool has_categories = false) {
  const TempDir dir;
  std::ofstream(dir / "items.jsonl") << lines;
  try {
    icl_questions({.label = "x", .path = dir / "items.jsonl", .type = type, .has_categories = has_categories},
                  *load_tokenizer(kIclGoldens + "/model/tokenizer.json"), kVocab, longest);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    return error.what();
  }
  ADD_FAILURE() << "was taken: " << lines;
  return "";
}

TEST(Prompts, SayWhichItemCannotBeAsked) {
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const auto lm = IclType::kLanguageModeling;
  expect(refusal(lm, ""), "has no items");
  expect(refusal(lm, "\n[1]\n"), "items.jsonl:2 expected a JSON object, got [1]");
  expect(refusal(lm, "{\"context\": 3}"),
         "items.jsonl:1: an item of type language_modeling has \"context\", a string; got 3");
  expect(refusal(lm, R"({"context": "a"})"), "has \"continuation\", a string; got none");
  expect(refusal(lm, R"({"context": "a", "continuation": "b"})", kLongest, true), "has \"category\"");
  expect(refusal(lm, R"({"context": " ", "continuation": "b"})"), "item 1 of x/0-shot has no context");
  expect(refusal(lm, R"({"context": "a", "continuation": "bcdefgh"})", 4),
         "leaves no room for a context in 4");
  const auto choice = IclType::kMultipleChoice;
  expect(refusal(choice, R"({"query": "a", "choices": ["b"], "gold": 0})"), "a list of two strings or more");
  expect(refusal(choice, R"({"query": "a", "choices": ["b", "c"], "gold": 2})"),
         "a number from 0 to 1; got 2");
  expect(refusal(IclType::kSchema, R"({"context_options": ["b", 4]})"), "\"context_options\"");
  expect(refusal(IclType::kGeneration, R"({"context": "a", "answer": "b", "aliases": "c"})"),
         "a list of strings");
}

TEST(Prompts, FilesAreCheckedBeforeARun) {
  const TempDir dir;
  std::ofstream(dir / "items.jsonl") << R"({"context": "a"})";
  const IclConfig icl = {
      .tasks = {{.label = "gone", .path = dir / "gone.jsonl"}, {.label = "x", .path = dir / "items.jsonl"}}};
  const std::vector<ConfigProblem> wrong = task_file_problems(icl), missing = missing_task_files(icl);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].path, "icl.tasks[2].path");
  EXPECT_NE(wrong[0].message.find("items.jsonl:1: an item of type language_modeling"), std::string::npos);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].path, "icl.tasks[1].path");
}

}  // namespace
}  // namespace tycho
