// A finding of `tycho doctor`: one line about one thing.
#pragma once
#include <string>
#include <vector>

namespace tycho {

enum class Health { kOk, kWarn, kFail };

struct Finding {
  std::string subject;
  Health health = Health::kOk;
  std::string text;    // how it is
  std::string advice;  // what to do; "" when all is well
};

// Each checks one part of the machine; findings are never exceptions.
std::vector<Finding> check_processor();
std::vector<Finding> check_gpus();
/// Persistence mode and clocks; nothing where there is no nvidia-smi.
std::vector<Finding> check_gpu_settings();
std::vector<Finding> check_engine();
std::vector<Finding> check_memory();
std::vector<Finding> check_limits();
/// Speed, free space and links of the file system that holds `folder`, or its nearest parent that is there.
std::vector<Finding> check_disk(const std::string& folder);
std::vector<Finding> check_slurm();
std::vector<Finding> check_lua();
/// Files of doctor/*.lua below the working folder.
std::vector<Finding> check_own();

}  // namespace tycho
