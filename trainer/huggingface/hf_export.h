// From a Tycho checkpoint to a folder that transformers loads. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

struct ExportOptions {
  std::string dtype = "as-is";  // fp32, bf16, fp16; as-is: that of the import, else fp32
  int64_t shard_bytes = int64_t{5} * 1000 * 1000 * 1000;  // maximum bytes of tensors in one file
  bool merge = false;                                     // merges adapters into their base model
  std::string card = {};                                  // text of README.md; "" for none
};

struct ExportReport {
  std::string architecture, dtype;
  int64_t num_params = 0, num_bytes = 0;
  std::vector<std::string> shards, files;  // names in the folder
  std::vector<std::string> warnings;
};

/// Returns true for names of files that hold a whole model's weights in exports of Tycho and transformers,
/// and for those of their indexes.
bool holds_exported_weights(const std::string& name);

/// Writes a new folder `to`: safetensors, index, tokenizer files, and config.json last. Tensors have Hugging
/// Face's names and order, so importing and exporting again gives the same bytes. Memory stays near the
/// largest tensor. Throws Error: kUnusable for the checkpoint, kUsage for a dtype or when `to` exists,
/// kStorage; an incomplete folder is removed.
ExportReport export_hf(FileOps& files, const CheckpointReader& checkpoint, const std::string& to,
                       const ExportOptions& options);

}  // namespace tycho
