// From a checkpoint of adapters to a folder that peft loads. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

struct AdapterReport {
  int64_t num_params = 0, num_bytes = 0;
  std::string base;                // the base model
  std::vector<std::string> files;  // names in the folder
};

/// Returns true when a checkpoint holds adapters without their base model.
bool holds_adapters(const CheckpointReader& checkpoint);

/// Writes a new folder `to`: adapter_model.safetensors in fp32, and adapter_config.json last, and README.md
/// with the text of `card` if there is one. Throws Error: kUnusable for the checkpoint, kUsage when `to`
/// exists, kStorage; an incomplete folder is removed.
AdapterReport export_adapters(FileOps& files, const CheckpointReader& checkpoint, const std::string& to,
                              const std::string& card = "");

}  // namespace tycho
