// What several tests of trainer/metrics share: a run, a step, an environment variable.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

inline RunInfo some_run() {
  RunInfo run;
  run.run_name = "mpt-125m";
  run.run_dir = "runs/mpt-125m";
  run.device = "NVIDIA H200";
  run.precision = "bf16";
  run.recipe_hash = "7c1e91d0aa55";
  run.pins = {"seq_len=8192"};
  run.total_steps = 4800;
  run.total_tokens = 2516582400;
  run.num_params = 124440576;
  run.device_memory_bytes = 141000000000;
  run.flops_per_token_full = 9.7e8;
  run.flops_per_token_causal = 8.6e8;
  run.peak_flops = 989.5e12;
  return run;
}

inline StepMetrics some_step(int64_t step = 1240) {
  StepMetrics m;
  m.step = step;
  m.tokens = step * 524288;
  m.samples = step * 64;
  m.loss = 3.4125;
  m.lr = 5.8e-4;
  m.grad_norm = 0.71;
  m.step_s = 1.25;
  m.data_wait_s = 0.00375;
  m.comm_wait_s = 0.0125;
  m.comm_s = 0.25;
  m.tokens_per_s = 419430.4;
  m.tflops = 406.8;
  m.tflops_causal = 360.7;
  m.mfu = 0.4112;
  m.mfu_causal = 0.3642;
  m.memory_bytes = 61000000000;
  m.eta_s = 4450;
  return m;
}

inline std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Sets a variable (nullptr removes it) and puts the old value back.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~ScopedEnv() { set(old_ ? old_->c_str() : nullptr); }

 private:
  void set(const char* value) { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace tycho
