// COMMIT: the manifest without which a folder is not a checkpoint, with the hashes of all of its bytes.
// Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/checkpoint/box.h"

namespace tycho {

/// Hashes are taken per block of this size, so that a partial read verifies only what it reads.
inline constexpr int64_t kHashBlockBytes = int64_t{16} << 20;

/// A file of a checkpoint, as it was written.
struct FileRecord {
  std::string name;  // within the folder
  int64_t num_bytes = 0;
  std::string hash;                 // XXH3-128 of the file, as xxh128sum prints it
  std::vector<std::string> blocks;  // XXH3-128 of each kHashBlockBytes of it, the last one shorter
};

/// A box of a tensor that lies in one file. `extent` is the box: [begin, end) in every dim of the global
/// shape.
struct TensorPiece {
  std::string file;
  int64_t offset = 0;  // of its first byte in the file
  int64_t num_bytes = 0;
  std::vector<std::pair<int64_t, int64_t>> extent;
  Box box() const;
};
/// What a piece of a tensor is called in its file's own header: as the tensor when it is the whole of it,
/// else "name[0:4, 2:3]".
std::string piece_name(const std::string& tensor, const std::vector<int64_t>& shape, const Box& piece);

struct TensorRecord {
  std::string name, dtype;
  std::vector<int64_t> shape;       // global
  std::vector<TensorPiece> pieces;  // which hold every element once
};

/// Everything in COMMIT but its own hash.
struct Manifest {
  std::string uuid;    // 32 hex digits, new for every save
  std::string parent;  // uuid of the checkpoint before it; empty for the first
  int64_t epoch = 0, step = 0;
  int64_t save_number = 0;  // of the saves of its epoch, from 1; 0 in older checkpoints
  Json world;  // {"ranks": 1, "mesh": {"pp": 1, "dp_replicate": 1, "dp_shard": 1, "cp": 1, "tp": 1}}
  std::vector<TensorRecord> tensors;
  std::vector<FileRecord> files;
  Json train_state, recipe;
  std::string recipe_hash;
  std::string tag;  // a name that somebody gave; empty for none
  Json route = {};  // what computed it, names to texts; null where that is not known
};

/// A name that leads nowhere but into its folder, and is not COMMIT's.
bool is_plain_file_name(const std::string& name);

/// The mesh of one rank.
Json world_of_one();

/// Canonical JSON, opened by the hash of the rest of the text: {"hash":"<32 hex digits>","epoch":...}
std::string manifest_text(const Manifest& manifest);
Json manifest_json(const Manifest& manifest);

/// Checks every field: types, plain file names, spans inside their files, sizes that agree with dtype and
/// extent, pieces of a tensor without hole or overlap. Throws Error (kUnusable) tagged with `place`.
Manifest manifest_from_json(const Json& json, const std::string& place);
/// The same, once the hash that opens the text was found right.
Manifest parse_manifest(std::string_view text, const std::string& place);

}  // namespace tycho
