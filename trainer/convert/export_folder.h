// A folder that an export writes. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// Writes the files of one export, and removes them all unless it came to its end.
class ExportFolder {
 public:
  ExportFolder(FileOps& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;

  void begin();
  void text(const std::string& name, const std::string& text);
  /// A safetensors file.
  void shard(const std::string& name, const std::vector<TensorBytes>& tensors);
  void finish();

 private:
  FileOps& files_;
  std::string path_;
  std::vector<std::string> names_;
  bool done_ = false;
};

}  // namespace tycho
