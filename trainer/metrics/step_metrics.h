// The numbers of one optimizer step, and the run they belong to. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace tycho {

/// How displays write a number of a step: loss=2.3105 where the label is "loss".
struct MetricText {
  enum class As { kNumber, kShort, kCount, kPercent, kClock };
  const char* label;  // "" for numbers that displays leave out
  As as = As::kNumber;
  int width = 0;  // minimum columns
};

/// One number of a step: its name in metrics.jsonl, log.show and ctx, its member and its help.
template <class T>
struct MetricField {
  const char* name;
  T member;  // &StepMetrics::loss
  const char* help;
  MetricText text = {""};
};
template <class T>
MetricField(const char*, T, const char*) -> MetricField<T>;
template <class T>
MetricField(const char*, T, const char*, MetricText) -> MetricField<T>;

struct StepMetrics {
  int64_t step = 0;
  int64_t tokens = 0;
  int64_t samples = 0;
  int64_t epoch = 0;
  double loss = 0;
  double lr = 0;
  double grad_norm = 0;
  double step_s = 0;
  double data_wait_s = 0;
  std::optional<double> comm_wait_s, comm_s;
  double tokens_per_s = 0;
  double tflops = 0;
  double tflops_causal = 0;
  std::optional<double> mfu;
  std::optional<double> mfu_causal;
  int64_t memory_bytes = 0;
  double eta_s = 0;

  /// Every number once, in the order of metrics.jsonl. All readers and writers iterate over this.
  static constexpr auto fields() {
    using M = StepMetrics;
    using As = MetricText::As;
    return std::tuple{
        MetricField{"step", &M::step, "Steps done, including this one."},
        MetricField{"tokens", &M::tokens, "Tokens seen so far, over all ranks."},
        MetricField{"samples", &M::samples, "Sequences seen so far, over all ranks."},
        MetricField{"epoch", &M::epoch, "Passes over the data, from 0."},
        MetricField{
            "loss", &M::loss, "Mean over the valid tokens of the global batch.", {"loss", As::kNumber, 6}},
        MetricField{"lr", &M::lr, "Learning rate of the step.", {"lr", As::kShort, 7}},
        MetricField{
            "grad_norm", &M::grad_norm, "Norm of the gradient, before clipping.", {"grad", As::kShort, 5}},
        MetricField{"step_s", &M::step_s, "Wall time of the step in seconds, including the wait for data."},
        MetricField{"data_wait_s", &M::data_wait_s, "Seconds of the step spent waiting for data."},
        MetricField{"comm_wait_s", &M::comm_wait_s,
                    "Seconds of the step that rank 0 waited for other ranks and for transfers between them; "
                    "none on one rank and on GPUs."},
        MetricField{"comm_s", &M::comm_s,
                    "Seconds that collectives and messages of the step took on rank 0, overlapped with "
                    "computing or not; none on one rank and on GPUs."},
        MetricField{"tokens_per_s",
                    &M::tokens_per_s,
                    "Tokens per second over the last steps, without evaluations and checkpoints.",
                    {"tok/s", As::kCount, 6}},
        MetricField{"tflops", &M::tflops, "TFLOP/s over the last steps, attention counted in full."},
        MetricField{"tflops_causal", &M::tflops_causal,
                    "The same, counting only the work that causal attention needs."},
        MetricField{"mfu",
                    &M::mfu,
                    "Share of the device's peak, attention counted in full; none for an unknown device.",
                    {"mfu", As::kPercent, 5}},
        MetricField{"mfu_causal", &M::mfu_causal, "The same for the work that causal attention needs."},
        MetricField{"memory_bytes", &M::memory_bytes, "Peak memory of the training device so far."},
        MetricField{"eta_s", &M::eta_s, "Estimated seconds to the end of the run.", {"eta", As::kClock}}};
  }
};

/// Calls visit(field, value) for every number of `metrics`; a std::optional is passed unchanged.
template <class Visit>
void for_each_metric(const StepMetrics& metrics, const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field, metrics.*field.member), ...); },
             StepMetrics::fields());
}

/// Facts that stay the same during a run.
struct RunInfo {
  std::string run_name, run_dir, precision, recipe_hash;
  std::string device;             // for display: "2 threads, AMD EPYC 7R13", "8 x NVIDIA H200"
  std::vector<std::string> pins;  // "seq_len=8192"
  int64_t num_ranks = 1;
  int64_t total_steps = 0, total_tokens = 0;
  int64_t first_step = 0;             // first step of this process
  std::optional<int64_t> until_step;  // step at which it ends before total_steps
  int64_t num_params = 0;
  int64_t num_samples = 0;           // samples of the data set
  int64_t device_memory_bytes = 0;   // memory of one device; 0 when unknown
  int64_t planned_memory_bytes = 0;  // planned peak of rank 0's device; 0 when unknown
  double flops_per_token_full = 0, flops_per_token_causal = 0;
  std::optional<double> peak_flops;  // of all ranks together
  std::vector<std::string> show;     // log.show
  std::string optimizer;             // its kind: "adamw"
};

}  // namespace tycho
