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
  std::string base;                // the model that they are for
  std::vector<std::string> files;  // names in the folder
};

/// Whether a checkpoint holds adapters, without the model they are for.
bool holds_adapters(const CheckpointReader& checkpoint);

/// Writes a new folder `to`: adapter_model.safetensors in fp32, and adapter_config.json last. Throws Error:
/// kUnusable for the checkpoint, kUsage when `to` is there already, kStorage; a folder that was begun is then
/// removed.
AdapterReport export_adapters(FileOps& files, const CheckpointReader& checkpoint, const std::string& to);

}  // namespace tycho
