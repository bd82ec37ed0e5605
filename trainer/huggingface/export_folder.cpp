// Files of an export, as the safetensors library and transformers write them.
#include "trainer/huggingface/export_folder.h"

#include "trainer/checkpoint/shard_writer.h"

namespace tycho {
namespace {

constexpr int64_t kHfAlignment = 8;  // of data in files that the safetensors library writes

}  // namespace

void ExportFolder::text(const std::string& name, const std::string& text) {
  write_text(files_, draft_.dir(), name, text);
}

void ExportFolder::shard(const std::string& name, const std::vector<TensorBytes>& tensors) {
  write_shard(files_, draft_.dir(), name, tensors, kHfAlignment);
}

}  // namespace tycho
