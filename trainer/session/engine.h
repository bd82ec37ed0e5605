// The interface between the thin `tycho` and libtycho_engine.so. Torch-free: the host includes it and opens
// the library when a run is built.
#pragma once
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "trainer/measure/comm_timing.h"
#include "trainer/metrics/reporter.h"
#include "trainer/recipe/icl.h"
#include "trainer/rendezvous/rank_group.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/session/build_id.h"
#include "trainer/session/chat_session.h"
#include "trainer/session/eval_result.h"
#include "trainer/session/run_request.h"
#include "trainer/session/session.h"
#include "trainer/tasks/continuation.h"
#include "trainer/tasks/harness_requests.h"
#include "trainer/tasks/result.h"

namespace tycho {

/// The signal that asked for a stop; 0 when there is none. Written by signal handlers.
using StopFlag = std::atomic<int>;

struct GenerateRequest {
  std::string path;  // of a TrainedSource
  std::vector<std::string> prompts;
  int64_t samples = 1;            // texts for each prompt
  std::string tokenizer;          // "" for the checkpoint's own
  bool without_adapters = false;  // use the base model instead
  int64_t max_tokens = 128;
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // 0: off
  double top_p = 1.0;
  double repetition_penalty = 1.0;  // 1: none
  std::vector<std::string> stop;    // none is empty
  bool ignore_eos = false;
  bool logprobs = false;
  uint64_t seed = 0;
  bool ema = false;  // use the moving average of the weights
  int threads = 0;
  std::string device = "auto";
};

struct GeneratedText {
  std::string text;  // without the stop string
  int64_t tokens = 0;
  std::string finish;  // "stop", "length" or "eos"
  // With logprobs: the chosen tokens, and the logarithms of the model's probabilities for them.
  std::vector<int32_t> token_ids;
  std::vector<double> logprobs;
};

/// Receives texts: prompt after prompt, and each prompt's samples one after the other.
class GenerateSink {
 public:
  virtual ~GenerateSink() = default;
  /// Called before the first text.
  virtual void warning(const std::string& text) = 0;
  virtual void begin(const std::string& prompt, int64_t sample) = 0;
  virtual void text(const std::string& piece) = 0;
  /// Not called for a text that a stop interrupts.
  virtual void end(const GeneratedText& result) = 0;
};

struct EvalRequest {
  std::string path;                // of a TrainedSource
  std::string data_dir;            // of MDS shards; "" for the sets of the recipe's eval_data
  std::string split;               // folder in data_dir; "" for data_dir itself
  std::optional<int64_t> batches;  // 0: all; nullopt: all of data_dir, eval.batches of the recipe's sets
  bool ema = false;                // use the moving average of the weights
  int threads = 0;
  std::string device = "auto";
};

struct EvalAnswer {
  std::string checkpoint;  // the evaluated one
  int64_t step = 0;
  EvalResults results;  // data_dir has the name ""
};

struct IclRequest {
  std::string path;  // of a TrainedSource
  IclConfig tasks;
  bool ema = false;  // use the moving average of the weights
  int threads = 0;
  std::string device = "auto";
};

struct IclAnswer {
  std::string checkpoint;  // the evaluated one
  int64_t step = 0;
  IclResults results;
};

struct LoglikelihoodRequest {
  std::string path;  // of a TrainedSource
  std::vector<HarnessRequest> requests;
  HarnessEncoding encoding = HarnessEncoding::kWithAdded;
  bool ema = false;  // use the moving average of the weights
  int threads = 0;
  std::string device = "auto";
};

struct EngineApi {
  /// Identifies the headers that the engine was built from. First, so that a program can read it in the table
  /// of any engine.
  BuildId build_id = this_build();
  /// Trains. Returns the exit code of an orderly end (0, 130, 138, 143). Throws Error otherwise. `tty` draws
  /// the live view.
  int (*run)(const RunRequest& request, bool tty, const StopFlag& stop) = nullptr;
  /// Opens a run to be trained step by step (open_session). The session must end before `stop` does.
  std::unique_ptr<TrainingSession> (*open)(const RunRequest& request, std::unique_ptr<Reporter> display,
                                           const StopFlag& stop) = nullptr;
  /// Continues prompts, after checking all of them.
  void (*generate)(const GenerateRequest& request, GenerateSink& sink, const StopFlag& stop) = nullptr;
  /// Opens a model to talk to.
  std::unique_ptr<ChatSession> (*open_chat)(const ChatRequest& request) = nullptr;
  /// Returns nullopt when it was stopped.
  std::optional<EvalAnswer> (*evaluate)(const EvalRequest& request, const StopFlag& stop) = nullptr;
  /// Returns nullopt when it was stopped.
  std::optional<IclAnswer> (*measure_icl)(const IclRequest& request, const StopFlag& stop) = nullptr;
  /// Returns a score for each request, in order; nullopt when it was stopped.
  std::optional<std::vector<ContinuationScore>> (*loglikelihoods)(const LoglikelihoodRequest& request,
                                                                  const StopFlag& stop) = nullptr;
  /// Meets the other ranks of `place`: collective, before and independent of any run of theirs. See
  /// open_group for `patience_s`. Throws Error (kTopology) that names the ranks that did not come, and 128 +
  /// signal for a `stop`.
  std::unique_ptr<RankGroup> (*meet)(const RankInfo& place, double patience_s,
                                     const StopFlag& stop) = nullptr;
  /// Meets the other ranks of `place` and measures their collectives; rank 0 calls `show`. Collective.
  /// Returns the signal that ended it, 0 for none.
  int (*bench_comm)(const CommBenchRequest& request, const RankInfo& place, const StopFlag& stop,
                    const ShowCommTiming& show) = nullptr;
  /// Returns versions of LibTorch, BLAS, CPU capability and CUDA plug-in, as JSON.
  std::string (*versions)() = nullptr;
};

}  // namespace tycho

/// The only symbol that the host looks up.
extern "C" const tycho::EngineApi* tycho_engine_api();
