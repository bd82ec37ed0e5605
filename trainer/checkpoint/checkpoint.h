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

/// A tensor to write, or a piece of one, or what one looks like. The bytes are the caller's and stay alive
/// until save returns; or `fill` makes them as they are written, for tensors that are too many to hold.
struct TensorBytes {
  /// Hugging Face's for weights, "optimizer.exp_avg.<name>" for state, average_name() for averages.
  std::string name;
  std::string dtype;           // safetensors' names: "F32", "BF16"
  std::vector<int64_t> shape;  // of the bytes here
  const void* data = nullptr;
  int64_t num_bytes = 0;
  /// Copies the bytes [begin, begin + n), whole elements, to `to`. Called in order, on a thread of the
  /// writer's; an Error ends the save.
  std::function<void(int64_t begin, void* to, int64_t n)> fill = {};
  /// Of a piece: the shape of the whole tensor, and where in it the piece begins. Empty for whole tensors.
  std::vector<int64_t> global_shape = {}, offsets = {};

  const std::vector<int64_t>& whole_shape() const { return global_shape.empty() ? shape : global_shape; }
  Box box() const { return offsets.empty() ? whole_box(shape) : Box{offsets, shape}; }
};

/// Everything that a checkpoint records besides bytes.
struct CheckpointMeta {
  int64_t step = 0;
  Json train_state;  // TrainState as JSON
  Json recipe;       // resolved config
  std::string recipe_hash;
  std::map<std::string, std::string> files;  // small files kept beside the shards: "tokenizer.json" -> text
  std::string tag;                           // the newest of a tag is kept for as long as it is that
  Json route = {};                           // what computed it: compute_route(); null when nothing did
  Json world = {};                           // as Manifest::world; null for one rank
};

/// One committed checkpoint.
struct CheckpointInfo {
  std::string path;  // folder
  int64_t step = 0;
  int64_t epoch = 0;        // fencing epoch of the run that wrote it
  int64_t save_number = 0;  // as Manifest::save_number
  int64_t num_bytes = 0;
  std::string uuid;
  std::string tag;  // empty for none
  Json manifest;    // COMMIT without its hash; manifest.h names the fields
  std::vector<std::string>
      warnings;  // of the save or the search that returned it: for people, nothing is lost
};

/// Writes the shards of a checkpoint into a folder.
using WriteShards = std::function<std::vector<WrittenShard>(const std::string& folder)>;

/// Writes checkpoints into <run>/checkpoints. Not thread-safe: one save at a time.
class CheckpointStore {
 public:
  /// `keep` newest checkpoints stay, 0 keeps all. `check_owner` is called before every COMMIT and delete; it
  /// throws (kFolderOwned) when the run lost its folder.
  CheckpointStore(FileOps& files, std::string dir, int64_t keep, int64_t epoch,
                  std::function<void()> check_owner = {});

  /// Durable when it returns the committed checkpoint. On any failure the half-written folder is removed and
  /// Error (kStorage, with bytes needed and free) thrown; committed checkpoints are never touched before the
  /// new one is durable. Retention runs last and spares the resumed one until two newer ones exist. What
  /// fails after COMMIT (the hint, retention) does not fail the save: it is in the result's warnings and is
  /// tried again after the next one.
  CheckpointInfo save(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors);
  /// The same for several ranks, called by the one that commits. `write` gets the folder, has every rank
  /// write its tensors and pieces of tensors there (write_shard), and returns what all have written: together
  /// every element of every tensor once. `num_bytes`: of all of them, about.
  CheckpointInfo save(const CheckpointMeta& meta, int64_t num_bytes, const WriteShards& write);
  /// The checkpoint that training goes on from: the parent of the next one.
  void set_resumed_from(const CheckpointInfo& info) { resumed_from_ = parent_ = info.uuid; }
  /// The next one is a copy of it, and as new as it.
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
  int64_t num_saves_ = 0;  // of this epoch, those that failed too
  std::function<void()> check_owner_;
  std::string resumed_from_, parent_;  // uuids, empty for none
};

/// Committed checkpoints of a folder, newest first: of the newest epoch, what was saved last. None when the
/// folder does not exist. Throws Error (kUnusable) when it cannot be read. Left out, with "name: why" when
/// lists for them are given: `broken` have a COMMIT that is damaged or files that are missing or of another
/// size; `unfinished` have no COMMIT (a save that was killed, a removal that was).
std::vector<CheckpointInfo> list_checkpoints(const std::string& dir,
                                             std::vector<std::string>* broken = nullptr,
                                             std::vector<std::string>* unfinished = nullptr);
/// A checkpoint folder, or the newest of a run folder or a checkpoints folder. Throws Error (kUnusable)
/// saying what was found. A `latest` that says something else is a warning.
CheckpointInfo find_checkpoint(const std::string& path);
/// Bytes that this process can still write where `path` is; -1 when the file system does not say.
int64_t free_bytes(const std::string& path);

/// Which weights to read: as training left them, or their moving average where there is one (ema).
enum class CheckpointWeights { kTrained, kAverage };
/// The name of the average of a weight: "ema.<name>".
std::string average_name(const std::string& weight);
/// Whether a checkpoint keeps averages.
bool has_average(const CheckpointInfo& info);

/// Reads a committed checkpoint. Every byte is verified against COMMIT's hashes before it is handed out. Used
/// by one thread at a time.
class CheckpointReader {
 public:
  /// With kAverage the names of weights stand for their averages; weights without one were not trained.
  /// Throws Error (kUnusable) when the manifest does not describe a whole checkpoint, or keeps no averages.
  explicit CheckpointReader(const CheckpointInfo& info,
                            CheckpointWeights weights = CheckpointWeights::kTrained);
  ~CheckpointReader();
  const CheckpointInfo& info() const;
  bool has(const std::string& name) const;
  /// dtype and shape of the whole tensor; data is null.
  const TensorBytes& describe(const std::string& name) const;
  /// In the order of their bytes.
  std::vector<std::string> names() const;
  /// Reads a tensor's bytes into memory of num_bytes. Throws Error (kUnusable) naming file, wanted and found
  /// hash.
  void read(const std::string& name, void* data, int64_t num_bytes) const;
  /// Reads the elements of a box of a tensor, in row-major order, from whichever pieces hold them, and from
  /// their files no more than the hashed blocks in which they lie. Throws like read.
  void read_box(const std::string& name, const Box& box, void* data, int64_t num_bytes) const;
  bool has_file(const std::string& name) const;
  /// A small file kept beside the shards, such as "tokenizer.json". Throws like read.
  std::string read_text_file(const std::string& name) const;
  /// Verifies every file of the checkpoint, and that the shards' own headers say what COMMIT says.
  void verify() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
