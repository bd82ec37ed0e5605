// Checkpoints: a new folder each, shards first, COMMIT last. Knows tensors by name and bytes, not models.
// Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/checkpoint/box.h"

namespace tycho {

struct WrittenShard;  // shard_writer.h

/// A tensor to write, a piece of one, or the description of one. The caller owns the bytes and keeps them
/// alive until save returns. For tensors that are too many to hold, `fill` produces the bytes while they are
/// written.
struct TensorBytes {
  /// Hugging Face's name for weights, "optimizer.exp_avg.<name>" for state, average_name() for averages.
  std::string name;
  std::string dtype;           // name in safetensors: "F32", "BF16"
  std::vector<int64_t> shape;  // of the bytes in `data`
  const void* data = nullptr;
  int64_t num_bytes = 0;
  /// Copies the bytes [begin, begin + n), whole elements, to `to`. Called in order, on a thread of the
  /// writer's; an Error ends the save.
  std::function<void(int64_t begin, void* to, int64_t n)> fill = {};
  /// For a piece: the shape of the whole tensor, and the offsets of the piece in it. Empty for whole tensors.
  std::vector<int64_t> global_shape = {}, offsets = {};

  const std::vector<int64_t>& whole_shape() const { return global_shape.empty() ? shape : global_shape; }
  Box box() const { return offsets.empty() ? whole_box(shape) : Box{offsets, shape}; }
};

/// Everything that a checkpoint records apart from tensors.
struct CheckpointMeta {
  int64_t step = 0;
  Json train_state;  // TrainState as JSON
  Json recipe;       // resolved config
  std::string recipe_hash;
  std::map<std::string, std::string> files;  // small files beside the shards: "tokenizer.json" -> text
  std::string tag;  // the newest checkpoint of a tag is kept as long as it is the newest
  Json route = {};  // kernels and devices that computed it: compute_route(); null when nothing did
  Json world = {};  // see Manifest::world; null for one rank
};

/// Fills `to` with n bytes of a file of a checkpoint, from `offset` on. Throws Error.
using ReadCheckpointFile = std::function<void(const std::string& file, int64_t offset, char* to, size_t n)>;

/// One committed checkpoint.
struct CheckpointInfo {
  std::string path;  // folder, or place in a store of objects: "s3://bucket/run/checkpoints/step-..."
  int64_t step = 0;
  int64_t epoch = 0;        // fencing epoch of the run that wrote it
  int64_t save_number = 0;  // see Manifest::save_number
  int64_t num_bytes = 0;
  std::string uuid;
  std::string tag;  // empty for none
  Json manifest;    // COMMIT without its hash; manifest.h names the fields
  std::vector<std::string>
      warnings;                  // from the save or the search that returned it; for display, nothing is lost
  ReadCheckpointFile read = {};  // of a checkpoint in a store of objects; null for a folder
};

/// Writes the shards of a checkpoint into a folder.
using WriteShards = std::function<std::vector<WrittenShard>(const std::string& folder)>;

/// Writes checkpoints into <run>/checkpoints. Not thread-safe: one save at a time.
class CheckpointStore {
 public:
  /// Keeps the `keep` newest checkpoints; 0 keeps all. Calls `check_owner` before every COMMIT and removal;
  /// it throws (kFolderOwned) when the run has lost its folder.
  CheckpointStore(FileOps& files, std::string dir, int64_t keep, int64_t epoch,
                  std::function<void()> check_owner = {});

  /// Returns the committed checkpoint once it is durable. On a failure, removes the half-written folder and
  /// throws Error (kStorage, with bytes needed and free); committed checkpoints are never touched before the
  /// new one is durable. Retention runs last and spares the resumed one until two newer ones exist. A failure
  /// after COMMIT (the hint, retention) does not fail the save: it is among the result's warnings, and the
  /// next save tries again.
  CheckpointInfo save(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors);
  /// Saves the tensors of several ranks; called by the rank that commits. `write` receives the folder, makes
  /// every rank write its tensors and pieces there (write_shard), and returns all shards, which together hold
  /// every element of every tensor once. `num_bytes` is their approximate total.
  CheckpointInfo save(const CheckpointMeta& meta, int64_t num_bytes, const WriteShards& write);
  /// Makes retention spare the checkpoints whose uuid `is_needed` accepts. Called by the thread that saves.
  void set_needed(std::function<bool(const std::string& uuid)> is_needed) {
    is_needed_ = std::move(is_needed);
  }
  /// Sets the checkpoint that training resumed from, which is the parent of the next one.
  void set_resumed_from(const CheckpointInfo& info) { resumed_from_ = parent_ = info.uuid; }
  /// Makes the next save a copy of `info`, with its save number.
  void set_copied_from(const CheckpointInfo& info) {
    set_resumed_from(info);
    num_saves_ = info.save_number - 1;
  }

 private:
  CheckpointInfo commit(const CheckpointMeta& meta, const WriteShards& write, const std::string& folder,
                        const std::string& uuid);
  void retain(CheckpointInfo& saved);
  void check_owner() const;

  FileOps& files_;
  std::string dir_;
  int64_t keep_;
  int64_t epoch_;
  int64_t num_saves_ = 0;  // of this epoch, including failed ones
  std::function<void()> check_owner_;
  std::function<bool(const std::string& uuid)> is_needed_;
  std::string resumed_from_, parent_;  // uuids, empty for none
};

/// Returns the committed checkpoints of a folder, newest first: of the newest epoch, the last saved one.
/// Empty when the folder does not exist. Throws Error (kUnusable) when it cannot be read. Adds "name: why"
/// for the folders left out to the given lists: `broken` have a damaged COMMIT, or files that are missing or
/// of another size; `unfinished` have no COMMIT (a save or removal that was killed).
std::vector<CheckpointInfo> list_checkpoints(const std::string& dir,
                                             std::vector<std::string>* broken = nullptr,
                                             std::vector<std::string>* unfinished = nullptr);
/// Returns the epoch of the newest of them, or 0. Throws as list_checkpoints does.
int64_t newest_epoch(const std::string& dir);
/// Returns the checkpoint at a path: a checkpoint folder, or the newest one of a run folder or a checkpoints
/// folder; the same below a place of a store of objects, such as "s3://bucket/run". Throws Error (kUnusable)
/// that says what was found. A `latest` that names another one is a warning.
CheckpointInfo find_checkpoint(const std::string& path);
/// Returns the bytes that this process can still write to the file system of `path`; -1 when it does not say.
int64_t free_bytes(const std::string& path);

/// Which weights to read: the trained ones, or their moving average where there is one (ema).
enum class CheckpointWeights { kTrained, kAverage };
/// Returns the name of a weight's average: "ema.<name>".
std::string average_name(const std::string& weight);
/// Returns true when the checkpoint has averages.
bool has_average(const CheckpointInfo& info);
/// Returns the weights that evaluations and exports read: averages when they are asked for, and those of an
/// optimizer with eval_weights.
CheckpointWeights evaluated_weights(const CheckpointInfo& info, bool ema);

/// Reads a committed checkpoint. Every byte is checked against COMMIT's hashes before it is returned. Used by
/// one thread at a time.
class CheckpointReader {
 public:
  /// With kAverage, the name of a weight refers to its average; weights without one were not trained. Throws
  /// Error (kUnusable) when the manifest does not describe a whole checkpoint, or has no averages.
  explicit CheckpointReader(const CheckpointInfo& info,
                            CheckpointWeights weights = CheckpointWeights::kTrained);
  ~CheckpointReader();
  const CheckpointInfo& info() const;
  bool has(const std::string& name) const;
  /// Returns dtype and shape of the whole tensor; data is null.
  const TensorBytes& describe(const std::string& name) const;
  /// Returns the names in the order of their bytes.
  std::vector<std::string> names() const;
  /// Reads a tensor into memory of num_bytes. Throws Error (kUnusable) that names the file and both hashes.
  void read(const std::string& name, void* data, int64_t num_bytes) const;
  /// Reads the elements of a box of a tensor, in row-major order, from whichever pieces hold them. Reads only
  /// the hashed blocks that contain them. Throws like read.
  void read_box(const std::string& name, const Box& box, void* data, int64_t num_bytes) const;
  bool has_file(const std::string& name) const;
  /// Reads a small file beside the shards, such as "tokenizer.json". Throws like read.
  std::string read_text_file(const std::string& name) const;
  /// Verifies every file of the checkpoint, and that the shards' headers agree with COMMIT.
  void verify() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
