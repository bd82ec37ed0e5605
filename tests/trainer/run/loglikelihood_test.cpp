// Requests of lm-evaluation-harness on a tiny Llama: against its own HFLM, and requests that are wrong.
#include "trainer/run/evaluate_checkpoint.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/huggingface/hf_import.h"

namespace tycho {
namespace {

const std::string kGoldens = std::string(TYCHO_GOLDEN_DIR) + "/icl";

class LoglikelihoodTest : public testing::Test {
 protected:
  LoglikelihoodTest() { import_hf(real_files(), kGoldens + "/model", dir_ / "model"); }

  std::vector<ContinuationScore> answers(const std::string& requests) {
    const c10::InferenceMode no_autograd;
    return loglikelihoods(TrainedSource(dir_ / "model"), read_harness_requests(requests, "requests.jsonl"),
                          HarnessEncoding::kWithAdded, at::kCPU, stop_)
        .value();
  }
  std::string error_of(const std::string& requests) {
    try {
      answers(requests);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ExitCode::kUsage || error.code() == ExitCode::kUnusable);
      return error.what();
    }
    ADD_FAILURE() << "was answered: " << requests;
    return "";
  }

  TempDir dir_;
  std::atomic<int> stop_ = 0;
};

TEST_F(LoglikelihoodTest, AgreesWithTheHarnesssOwnModel) {
  const std::string text = read_file(kGoldens + "/harness.jsonl");
  const std::vector<ContinuationScore> scores = answers(text);
  size_t line = 0, begin = 0;
  for (; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    const Json expected = parse_json(text.substr(begin, end - begin), "golden");
    begin = end + 1;
    ASSERT_LT(line, scores.size());
    EXPECT_NEAR(scores[line].logprob, expected.at("logprob").get<double>(), 1e-5) << expected;
    EXPECT_EQ(scores[line].is_greedy, expected.at("is_greedy").get<bool>()) << expected;
  }
  EXPECT_EQ(line, scores.size());
  EXPECT_GE(line, 10u);
}

TEST_F(LoglikelihoodTest, TextsHaveTheTokensOfTheHarness) {
  const Json cases = parse_json(read_file(kGoldens + "/harness_encodings.json"), "golden");
  int num_refused = 0;
  for (const Json& one : cases) {
    const std::string style = one.at("style");
    const auto tokenizer =
        tokenizer_from_text(read_file(kGoldens + "/../tokenizer_styles/" + style + ".json"), style,
                            {{kTokenizerConfigFile, one.at("config").dump()}});
    const auto encoding = one.at("plain").get<bool>() ? HarnessEncoding::kPlain : HarnessEncoding::kWithAdded;
    for (const Json& request : one.at("requests")) {
      const HarnessRequest asked_for = {request.at("context").get<std::string>(),
                                        request.at("continuation").get<std::string>(), "golden"};
      const auto encode = [&] {
        return encode_request(asked_for, tokenizer.get(), tokenizer->size(), 1000, encoding);
      };
      if (request.at("continuation_ids").empty()) {  // HFLM asserts that there are some
        EXPECT_THROW(encode(), Error) << style << request;
        ++num_refused;
        continue;
      }
      const Continuation made = encode();
      auto ids = request.at("context_ids").get<std::vector<int32_t>>();
      const auto asked = request.at("continuation_ids").get<std::vector<int32_t>>();
      ids.insert(ids.end(), asked.begin(), asked.end());
      EXPECT_EQ(made.tokens, ids) << style << request;
      EXPECT_EQ(made.num_asked, std::ssize(asked)) << style << request;
    }
  }
  EXPECT_EQ(cases.size(), 8u);
  EXPECT_EQ(num_refused, 2);  // Llama 2's "the token" ends with the context's last token
}

TEST_F(LoglikelihoodTest, TokensAreTakenAsTheyAre) {
  const auto tokenizer = load_tokenizer(kGoldens + "/model/tokenizer.json");
  const std::vector<int32_t> context = tokenizer->encode("The colour of grass is"),
                             continuation = tokenizer->encode(" green");
  const Json ids = {{"context", context}, {"continuation", continuation}},
             text = {{"context", "The colour of grass is"}, {"continuation", " green"}};
  const std::vector<ContinuationScore> scores = answers(ids.dump() + "\n\n" + text.dump());
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].logprob, scores[1].logprob);
  EXPECT_TRUE(scores[0].is_greedy);
}

TEST_F(LoglikelihoodTest, AnAnswerDoesNotDependOnWhatElseIsAsked) {
  const std::string one = R"({"context": "1 + 1 =", "continuation": " 2"})";
  const double alone = answers(one)[0].logprob;
  std::string many;
  for (int i = 0; i < 40; ++i)
    many +=
        Json{{"context", std::string(static_cast<size_t>(i % 7 + 1), 'a')}, {"continuation", " b c"}}.dump() +
        "\n";
  EXPECT_NEAR(answers(many + one).back().logprob, alone, 1e-5);
}

TEST_F(LoglikelihoodTest, SaysWhichRequestIsWrong) {
  EXPECT_EQ(error_of("\n"),
            "[eval] expected requests, one JSON object per line, and requests.jsonl has none");
  EXPECT_NE(error_of("{\"context\": \"a\"}").find("requests.jsonl:1 expected \"continuation\" as a string"),
            std::string::npos);
  EXPECT_NE(
      error_of("{\"context\": \"a\", \"continuation\": \"b\"}\n{").find("[requests.jsonl:2] not valid JSON"),
      std::string::npos);
  EXPECT_NE(error_of("{\"context\": [1, -1], \"continuation\": \"b\"}").find("a list of token ids"),
            std::string::npos);
  EXPECT_NE(error_of("{\"context\": [100000], \"continuation\": [1]}").find("expected tokens from 0 to"),
            std::string::npos);
  EXPECT_NE(error_of("{\"context\": \"a\", \"continuation\": \"\"}").find("continuation of 1 to 96 tokens"),
            std::string::npos);
  const std::string longer(97, '!');
  EXPECT_NE(error_of(Json{{"context", "a"}, {"continuation", longer}}.dump()).find("got 97"),
            std::string::npos);
}

TEST_F(LoglikelihoodTest, AStopEndsItWithoutAnswers) {
  stop_ = 15;
  const auto requests = read_harness_requests(R"({"context": "a", "continuation": "b"})", "requests.jsonl");
  const TrainedSource checkpoint(dir_ / "model");
  EXPECT_FALSE(
      loglikelihoods(checkpoint, requests, HarnessEncoding::kWithAdded, at::kCPU, stop_).has_value());
}

}  // namespace
}  // namespace tycho
