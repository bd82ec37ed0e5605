// An engine that computes nothing: shows what the host hands over, and waits for a stop when the seed is 99;
// writes a run folder when TYCHO_FAKE_RUN_FOLDER is set; has memory for TYCHO_FAKE_MEMORY_SP sequences, if
// that is.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/bindings/run/fake_session.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/recipe/config_io.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/session/engine.h"

namespace {

using namespace tycho;

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void write_folder_when_asked(const RunRequest& request) {
  const bool owns_folder = find_rank_place(process_environment()).rank == 0;
  if (!owns_folder || std::getenv("TYCHO_FAKE_RUN_FOLDER") == nullptr) return;
  const TrainConfig& config = request.config;
  make_dirs(real_files(), run_folder_path(config));
  write_run_folder(real_files(), run_folder_path(config), request, Json::object());
}

int run(const RunRequest& request, bool tty, const StopFlag& stop) {
  std::printf("hash=%s pins=%zu sources=%zu argv=%s tty=%d\n%s\n", request.recipe_hash.c_str(),
              request.pins.size(), request.sources.size(), request.argv.back().c_str(), tty ? 1 : 0,
              recipe_json(request).c_str());
  const RankInfo place = find_rank_place(process_environment());
  std::printf("rank %d of %d\n", place.rank, place.num_ranks);
  std::printf("OMP_NUM_THREADS=%s OMP_WAIT_POLICY=%s\n", environment("OMP_NUM_THREADS"),
              environment("OMP_WAIT_POLICY"));
  std::fflush(stdout);
  write_folder_when_asked(request);
  const char* most_sequences = environment("TYCHO_FAKE_MEMORY_SP");
  if (*most_sequences != 0 && micro_batch_sequences(request.config) > std::atoi(most_sequences)) {
    *request.before_first_step = std::getenv("TYCHO_FAKE_STEPS") == nullptr;
    throw Error("[memory] CUDA out of memory", ExitCode::kNumerics);
  }
  if (recipe_json(request).find("\"seed\":99") == std::string::npos) return 0;
  if (recipe_json(request).find("\"resume\":\"none\"") != std::string::npos)
    throw Error("[fake] full", ExitCode::kStorage);
  while (stop == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const char* last_step_ms = environment("TYCHO_FAKE_LAST_STEP_MS");  // the step that is still running
  std::this_thread::sleep_for(std::chrono::milliseconds(*last_step_ms != 0 ? std::atoi(last_step_ms) : 100));
  return 128 + stop;
}

void generate(const GenerateRequest& request, GenerateSink& sink, const StopFlag&) {
  if (!request.tokenizer.empty()) sink.warning(request.tokenizer + " is another tokenizer");
  for (const std::string& prompt : request.prompts) {
    for (int64_t sample = 0; sample < request.samples; ++sample) {
      std::string text = (request.ema ? " and the average of " : " and ") + request.path;
      for (const std::string& stop : request.stop) text += " stop=" + stop;
      sink.begin(prompt, sample);
      sink.text(text);
      GeneratedText result = {text, 3, request.ignore_eos ? "length" : "eos", {}, {}};
      if (request.logprobs) result.token_ids = {7, 9}, result.logprobs = {-0.5, -1.5};
      sink.end(result);
    }
  }
}

/// Repeats the last message, with the number of messages and the temperature. "wait" waits for a stop; "long"
/// drops the oldest turn; "too long" does not fit.
class FakeChat : public ChatSession {
 public:
  explicit FakeChat(const ChatRequest& request)
      : facts_{.place = request.path, .chat_template = request.chat_template, .longest = 64} {
    facts_.is_plain = request.chat_template.empty();
  }
  const ChatFacts& facts() const override { return facts_; }
  ChatAnswer answer(const std::vector<ChatMessage>& messages, const ChatOptions& options,
                    const std::function<void(const std::string&)>& emit, const StopFlag& stop) override {
    const std::string& said = messages.back().content;
    if (said == "too long") throw Error("[chat] expected a message of at most 63 tokens", ExitCode::kUsage);
    ChatAnswer answer{.text = said + " to", .finish = "eos"};
    emit(answer.text);
    if (said == "wait") {
      while (stop == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      answer.finish = "interrupted";
      return answer;
    }
    const std::string rest =
        fmt::format(" {} of {} at {}", messages.front().role, messages.size(), options.temperature);
    emit(rest);
    answer.text += rest;
    if (said == "long") answer.dropped_messages = 2;
    return answer;
  }

 private:
  ChatFacts facts_;
};

std::unique_ptr<ChatSession> open_chat(const ChatRequest& request) {
  return std::make_unique<FakeChat>(request);
}

std::optional<EvalAnswer> evaluate(const EvalRequest& request, const StopFlag&) {
  if (request.data_dir == "overflows")
    return EvalAnswer{request.path, 7, {{"", eval_result({-NAN, 10, 10}, 2.0)}}};
  if (request.ema) return EvalAnswer{request.path, 7, {{"", eval_result({0.25 * 10, 10, 10}, 2.0)}}};
  const int64_t tokens = request.batches.value_or(10);
  if (!request.data_dir.empty())
    return EvalAnswer{request.path, 7, {{"", eval_result({0.5 * 10, 10, 10}, 2.0)}}};
  return EvalAnswer{
      request.path,
      7,
      {{"c4", eval_result({0.5 * static_cast<double>(tokens), static_cast<double>(tokens), tokens}, 2.0)},
       {"books", eval_result({1.5 * 30, 30, 30}, 1.0)}}};
}

/// NaN for what continues "overflows".
std::optional<std::vector<ContinuationScore>> loglikelihoods(const LoglikelihoodRequest& request,
                                                             const StopFlag&) {
  std::vector<ContinuationScore> scores;
  for (const HarnessRequest& one : request.requests) {
    const bool overflows = std::get<std::string>(one.context) == "overflows";
    scores.push_back(overflows ? ContinuationScore{.logprob = NAN} : ContinuationScore{-1.5, true, 0.5, 0.5});
  }
  return scores;
}

std::optional<IclAnswer> measure_icl(const IclRequest& request, const StopFlag&) {
  IclAnswer answer{request.path, 7, {}};
  answer.results.tasks = {{.name = "words/0-shot",
                           .metrics = {{"InContextLearningLMAccuracy", 0.75}},
                           .items = 4,
                           .outputs = {},
                           .not_finite = 1}};
  return answer;
}

/// Seed 99 waits for a stop, seed 98 is killed.
std::unique_ptr<TrainingSession> open(const RunRequest& request, std::unique_ptr<Reporter> display,
                                      const StopFlag& stop) {
  write_folder_when_asked(request);
  if (recipe_json(request).find("\"seed\":98") != std::string::npos) std::raise(SIGKILL);
  if (recipe_json(request).find("\"seed\":99") != std::string::npos) {
    std::puts("waiting");
    std::fflush(stdout);
    while (stop == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::make_unique<FakeSession>(std::move(display));
}

std::string versions() {
  const char* versions = environment("TYCHO_FAKE_VERSIONS");
  return *versions != 0 ? versions : R"({"libtorch": "none"})";
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const tycho::EngineApi* tycho_engine_api() {
  static const bool is_older = std::getenv("TYCHO_FAKE_OLD_ENGINE") != nullptr;
  static const EngineApi api = {.build_id = is_older ? BuildId{"0123456789abcdef"} : this_build(),
                                .run = run,
                                .open = open,
                                .generate = generate,
                                .open_chat = open_chat,
                                .evaluate = evaluate,
                                .measure_icl = measure_icl,
                                .loglikelihoods = loglikelihoods,
                                .versions = versions};
  return &api;
}
