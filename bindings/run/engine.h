// The door between the thin `tycho` and libtycho_engine.so. Torch-free: the host includes it and opens the
// library when a run is built.
#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "trainer/run_folder.h"

namespace tycho {

/// The stop that a signal asked for; 0 while there is none, else the signal's number. Written by signal
/// handlers.
using StopFlag = std::atomic<int>;

struct GenerateRequest {
  std::string path;  // run folder or checkpoint
  std::string prompt;
  std::string tokenizer;  // "" for the checkpoint's own
  int64_t max_tokens = 128;
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // 0: off
  double top_p = 1.0;
  uint64_t seed = 0;
  int threads = 0;
  std::string device = "auto";
};

struct EngineApi {
  int version = 1;
  /// Trains. Returns the exit code of an orderly end (0, 130, 138, 143); throws Error otherwise. `tty`: draw
  /// the live view.
  int (*run)(const RunRequest& request, bool tty, const StopFlag& stop) = nullptr;
  /// Writes text as it is generated to `emit`.
  void (*generate)(const GenerateRequest& request, const std::function<void(const std::string&)>& emit,
                   const StopFlag& stop) = nullptr;
  /// Versions of LibTorch, BLAS, CPU capability, CUDA plug-in, as JSON.
  std::string (*versions)() = nullptr;
};

}  // namespace tycho

/// The only symbol that the host looks up.
extern "C" const tycho::EngineApi* tycho_engine_api();
