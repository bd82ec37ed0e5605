// Keeps the names of what was written, to remove it.
#include "trainer/convert/export_folder.h"

#include <filesystem>
#include <system_error>

#include "trainer/checkpoint/shard_writer.h"

namespace tycho {
namespace {

constexpr int64_t kHfAlignment = 8;  // of data in files that the safetensors library writes

}  // namespace

ExportFolder::~ExportFolder() {
  if (done_) return;
  std::error_code error;
  for (const std::string& name : names_) std::filesystem::remove(path_ + "/" + name, error);
  std::filesystem::remove(path_, error);
}

void ExportFolder::begin() { make_dirs(files_, path_); }

void ExportFolder::text(const std::string& name, const std::string& text) {
  names_.push_back(name);
  write_text(files_, path_, name, text);
}

void ExportFolder::shard(const std::string& name, const std::vector<TensorBytes>& tensors) {
  names_.push_back(name);
  write_shard(files_, path_, name, tensors, kHfAlignment);
}

void ExportFolder::finish() {
  files_.sync_dir(path_);
  done_ = true;
}

}  // namespace tycho
