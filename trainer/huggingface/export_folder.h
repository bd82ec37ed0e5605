// A folder that an export writes. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/folder_draft.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {

/// Writes the files of one export. The folder appears when all of them are written.
class ExportFolder {
 public:
  ExportFolder(FileOps& files, const std::string& path) : files_(files), draft_(files, path) {}

  void text(const std::string& name, const std::string& text);
  /// Writes a safetensors file.
  void shard(const std::string& name, const std::vector<TensorBytes>& tensors);
  void finish() { draft_.publish(); }

 private:
  FileOps& files_;
  FolderDraft draft_;
};

}  // namespace tycho
