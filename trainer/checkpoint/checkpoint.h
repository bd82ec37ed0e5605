// Checkpoints: a fresh folder each, shards first, COMMIT last (reference/reliability.md §2.0). Knows tensors by name and
// bytes, not models. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {

/// A tensor in host memory. The bytes are the caller's and stay alive until save returns.
struct TensorBytes {
  std::string name;             // Hugging Face's for weights, "optimizer.exp_avg.<name>" for state
  std::string dtype;            // safetensors' names: "F32", "BF16"
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int64_t num_bytes = 0;
};

/// Everything that a checkpoint records besides bytes.
struct CheckpointMeta {
  int64_t step = 0;
  Json train_state;             // TrainState as JSON
  Json recipe;                  // resolved config
  std::string recipe_hash;
  std::map<std::string, std::string> files;   // small files kept beside the shards: "tokenizer.json" -> text
};

/// One committed checkpoint.
struct CheckpointInfo {
  std::string path;             // folder
  int64_t step = 0;
  int64_t epoch = 0;            // fencing epoch of the run that wrote it
  int64_t num_bytes = 0;
  std::string uuid;
  Json manifest;                // COMMIT
};

/// Writes and finds checkpoints in <run>/checkpoints. Not thread-safe: one save at a time.
class CheckpointStore {
 public:
  /// `check_owner` is called before every COMMIT and delete; it throws (kFolderOwned) when the run lost its folder.
  CheckpointStore(FileOps& files, std::string dir, int64_t keep, int64_t epoch, std::function<void()> check_owner = {});

  /// Durable when it returns the committed checkpoint. On any failure the half-written folder is removed and Error
  /// (kStorage) thrown; committed checkpoints are never touched before the new one is durable. Retention runs last and
  /// spares `resumed_from` until two newer ones exist.
  CheckpointInfo save(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors);
  void set_resumed_from(const std::string& path) { resumed_from_ = path; }

 private:
  FileOps& files_;
  std::string dir_;
  int64_t keep_;
  int64_t epoch_;
  std::function<void()> check_owner_;
  std::string resumed_from_;
};

/// Committed checkpoints of a folder, newest (epoch, step) first. Folders without a valid COMMIT are left out; their
/// names go to `broken` when it is given.
std::vector<CheckpointInfo> list_checkpoints(const std::string& dir, std::vector<std::string>* broken = nullptr);
/// A checkpoint folder, or the newest of a run folder or a checkpoints folder. Throws Error (kUnusable) saying what was found.
CheckpointInfo find_checkpoint(const std::string& path);

/// Reads a committed checkpoint. Every byte is verified against COMMIT's hashes before it is handed out.
class CheckpointReader {
 public:
  explicit CheckpointReader(const CheckpointInfo& info);
  ~CheckpointReader();
  const CheckpointInfo& info() const;
  bool has(const std::string& name) const;
  /// dtype and shape; data is null.
  const TensorBytes& describe(const std::string& name) const;
  std::vector<std::string> names() const;
  /// Reads a tensor's bytes into memory of num_bytes. Throws Error (kUnusable) naming file, wanted and found hash.
  void read(const std::string& name, void* data, int64_t num_bytes) const;
  std::string read_text_file(const std::string& name) const;
  /// Verifies every file of the checkpoint.
  void verify() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
