// The numbers of one optimizer step, and the run they belong to. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tycho {

struct StepMetrics {
  int64_t step = 0;    // steps done, this one included
  int64_t tokens = 0;  // tokens seen so far
  int64_t samples = 0;
  int64_t epoch = 0;
  double loss = 0;  // mean over the valid tokens of the global batch
  double lr = 0;
  double grad_norm = 0;  // before clipping
  double step_s = 0;     // wall time of the step, data wait included
  double data_wait_s = 0;
  double tokens_per_s = 0;  // over the last steps, without evaluation and checkpoints: throughput.h
  double tflops = 0;        // full attention counted
  double tflops_causal = 0;
  std::optional<double> mfu;  // share of the device's peak, full; none for an unknown device
  std::optional<double> mfu_causal;
  int64_t memory_bytes = 0;  // peak, of the device that trains
  double eta_s = 0;
};

/// What does not change during a run.
struct RunInfo {
  std::string run_name, run_dir, precision, recipe_hash;
  std::string device;             // for people: "2 threads, AMD EPYC 7R13", "8 x NVIDIA H200"
  std::vector<std::string> pins;  // "seq_len=8192"
  int64_t num_ranks = 1;
  int64_t total_steps = 0, total_tokens = 0;
  int64_t first_step = 0;             // where this process starts
  std::optional<int64_t> until_step;  // where it ends before total_steps
  int64_t num_params = 0;
  int64_t num_samples = 0;          // of the data set
  int64_t device_memory_bytes = 0;  // of one device; 0 when unknown
  double flops_per_token_full = 0, flops_per_token_causal = 0;
  std::optional<double> peak_flops;  // of all ranks together
  std::vector<std::string> show;     // log.show
};

}  // namespace tycho
