// A folder of weights that are finite, and overflow where one token stands in the text.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/huggingface/hf_export.h"

namespace tycho {

/// Exports a checkpoint of an MPT to `folder` and sets the row of `token` in its table of embeddings to
/// numbers near the largest of fp32, whose mean in LayerNorm overflows.
inline void export_overflowing(const CheckpointInfo& checkpoint, const std::string& folder, int64_t token) {
  export_hf(real_files(), CheckpointReader(checkpoint), folder, {});
  const std::string path = folder + "/model.safetensors";
  const SafetensorsHeader header = read_safetensors_header(path);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.name.find("wte.weight") == std::string::npos) continue;
    const int64_t width = entry.shape.at(1);
    const std::vector<float> row(static_cast<size_t>(width), 3.3e38F);
    file.seekp(header.data_start + entry.begin + token * width * 4);
    file.write(reinterpret_cast<const char*>(row.data()), width * 4);
  }
}

}  // namespace tycho
