// A finding of `tycho doctor`: one line about one thing.
#pragma once
#include <string>
#include <vector>

namespace tycho {

enum class Health { kOk, kWarn, kFail };

struct Finding {
  std::string subject;
  Health health = Health::kOk;
  std::string text;    // the state found
  std::string advice;  // what to do; "" when nothing is wrong
};

// Each function checks one part of the machine. Findings are never exceptions.
std::vector<Finding> check_processor();
std::vector<Finding> check_gpus();
/// Checks persistence mode and clocks; empty without nvidia-smi.
std::vector<Finding> check_gpu_settings();
/// Checks LibTorch, and what CUDA says of GPUs.
std::vector<Finding> check_engine();
std::vector<Finding> check_memory();
std::vector<Finding> check_limits();
/// Checks speed, free space and links of the file system that holds `folder`, or its nearest existing parent.
std::vector<Finding> check_disk(const std::string& folder);
std::vector<Finding> check_slurm();
std::vector<Finding> check_lua();
/// Runs the checks in doctor/*.lua below the working folder.
std::vector<Finding> check_own();

}  // namespace tycho
