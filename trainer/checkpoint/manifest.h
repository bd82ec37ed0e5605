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

/// A file of a checkpoint as it was written.
struct FileRecord {
  std::string name;  // within the folder
  int64_t num_bytes = 0;
  std::string hash;                 // XXH3-128 of the file, as xxh128sum prints it
  std::vector<std::string> blocks;  // XXH3-128 of each block of kHashBlockBytes; the last one is shorter
};

/// A box of a tensor that one file holds. `extent` is the box: [begin, end) in every dim of the global shape.
struct TensorPiece {
  std::string file;
  int64_t offset = 0;  // of its first byte in the file
  int64_t num_bytes = 0;
  std::vector<std::pair<int64_t, int64_t>> extent;
  Box box() const;
};
/// Returns the name of a piece in its file's header: the tensor's name when the piece is the whole tensor,
/// else "name[0:4, 2:3]".
std::string piece_name(const std::string& tensor, const std::vector<int64_t>& shape, const Box& piece);

struct TensorRecord {
  std::string name, dtype;
  std::vector<int64_t> shape;       // global
  std::vector<TensorPiece> pieces;  // together hold every element once
};

/// The contents of COMMIT without its own hash.
struct Manifest {
  std::string uuid;    // 32 hex digits, new for every save
  std::string parent;  // uuid of the checkpoint before it; empty for the first
  int64_t epoch = 0, step = 0;
  int64_t save_number = 0;  // counted from 1 within its epoch; 0 in older checkpoints
  Json world;  // {"ranks": 1, "mesh": {"pp": 1, "dp_replicate": 1, "dp_shard": 1, "cp": 1, "tp": 1}}
  std::vector<TensorRecord> tensors;
  std::vector<FileRecord> files;
  Json train_state, recipe;
  std::string recipe_hash;
  std::string tag;  // a name given by a user; empty for none
  Json route = {};  // kernels and devices that computed it, as strings by name; null when unknown
};

/// Returns true for a name without folders that is not COMMIT's.
bool is_plain_file_name(const std::string& name);

/// Returns the mesh of one rank.
Json world_of_one();

/// Returns canonical JSON that begins with the hash of the rest: {"hash":"<32 hex digits>","epoch":...}
std::string manifest_text(const Manifest& manifest);
/// Returns the same of a manifest as JSON, fields of other versions included.
std::string commit_text(const Json& manifest);
Json manifest_json(const Manifest& manifest);

/// Checks every field: types, plain file names, spans inside their files, sizes that agree with dtype and
/// extent, pieces of a tensor without hole or overlap. Throws Error (kUnusable) tagged with `place`.
Manifest manifest_from_json(const Json& json, const std::string& place);
/// Verifies the hash at the beginning of the text, then reads it like manifest_from_json.
Manifest parse_manifest(std::string_view text, const std::string& place);

}  // namespace tycho
