// Hands out bytes of a checkpoint, block by block, only after their hash was right.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/recipe/ema_steps.h"

namespace tycho {
namespace {

struct StoredPiece {
  std::string file;
  int64_t offset;
  Box box;
};

struct Tensor {
  TensorBytes shape;
  std::vector<StoredPiece> pieces;  // by file and offset
};

/// Expected entries of a file's header: the dtype, shape and first byte in the file of each.
using Entries = std::map<std::string, std::tuple<std::string, std::vector<int64_t>, int64_t>>;

[[noreturn]] void fail_hash(const std::string& path, int64_t block, const std::string& wanted,
                            const std::string& found) {
  fail(ExitCode::kUnusable,
       "[checkpoint] {} is damaged in bytes {} to {}: XXH3-128 {} is recorded, {} was read; use an older "
       "checkpoint",
       path, block * kHashBlockBytes, (block + 1) * kHashBlockBytes, wanted, found);
}

/// Reads pieces of one file. Keeps the last block that was needed only in part, for the next piece.
class VerifiedFile {
 public:
  /// `read` is null for a file of this machine.
  VerifiedFile(std::string path, FileRecord record, ReadCheckpointFile read)
      : path_(std::move(path)), record_(std::move(record)), read_(std::move(read)) {}
  const FileRecord& record() const { return record_; }
  const std::string& path() const { return path_; }

  void read(int64_t offset, char* to, int64_t num_bytes) {
    while (num_bytes > 0) {
      const int64_t block = offset / kHashBlockBytes, begin = block * kHashBlockBytes;
      const int64_t n = std::min(num_bytes, begin + block_bytes(block) - offset);
      if (n == block_bytes(block)) {
        read_block(block, to);
      } else {
        cache(block);
        std::memcpy(to, cached_.data() + (offset - begin), static_cast<size_t>(n));
      }
      offset += n, to += n, num_bytes -= n;
    }
  }

 private:
  int64_t block_bytes(int64_t block) const {
    return std::min(kHashBlockBytes, record_.num_bytes - block * kHashBlockBytes);
  }
  void read_block(int64_t block, char* to) const {
    const int64_t num_bytes = block_bytes(block);
    if (read_)
      read_(record_.name, block * kHashBlockBytes, to, static_cast<size_t>(num_bytes));
    else
      read_exactly(path_, block * kHashBlockBytes, to, static_cast<size_t>(num_bytes));
    const std::string found = hash_hex({to, static_cast<size_t>(num_bytes)});
    const std::string& wanted = record_.blocks[static_cast<size_t>(block)];
    if (found != wanted) fail_hash(path_, block, wanted, found);
  }
  void cache(int64_t block) {
    if (block == cached_block_) return;
    cached_block_ = -1;
    cached_.resize(static_cast<size_t>(block_bytes(block)));
    read_block(block, cached_.data());
    cached_block_ = block;
  }

  std::string path_;
  FileRecord record_;
  ReadCheckpointFile read_;
  int64_t cached_block_ = -1;
  std::vector<char> cached_;
};

/// Checks that the shard's header describes the same tensors at the same offsets as COMMIT.
void check_header(VerifiedFile& file, const Entries& wanted) {
  const std::string& path = file.path();
  const SafetensorsHeader header = read_safetensors_header(
      path, file.record().num_bytes,
      [&](int64_t offset, char* to, size_t n) { file.read(offset, to, static_cast<int64_t>(n)); });
  Entries found;
  for (const SafetensorsEntry& entry : header.entries)
    found[entry.name] = {entry.dtype, entry.shape, header.data_start + entry.begin};
  if (found != wanted)
    fail(ExitCode::kUnusable, "[checkpoint] the header of {} and COMMIT name other tensors", path);
}

}  // namespace

std::string average_name(const std::string& weight) { return "ema." + weight; }

bool has_average(const CheckpointInfo& info) {
  const std::string prefix = average_name("");
  for (const TensorRecord& tensor : manifest_from_json(info.manifest, info.path).tensors)
    if (tensor.name.starts_with(prefix)) return true;
  return false;
}

CheckpointWeights evaluated_weights(const CheckpointInfo& info, bool ema) {
  const bool is_own = has_eval_weights(info.manifest.value("recipe", Json::object())) && has_average(info);
  return ema || is_own ? CheckpointWeights::kAverage : CheckpointWeights::kTrained;
}

struct CheckpointReader::State {
  CheckpointInfo info;
  CheckpointWeights weights;
  std::vector<std::string> names;
  std::unordered_map<std::string, Tensor> tensors;
  std::unordered_map<std::string, VerifiedFile> files;

  VerifiedFile& file(const std::string& name) {
    const auto found = files.find(name);
    if (found == files.end()) fail(ExitCode::kUnusable, "[checkpoint] {} has no file '{}'", info.path, name);
    return found->second;
  }
  /// Returns the expected header entries, by file.
  std::map<std::string, Entries> entries() const {
    std::map<std::string, Entries> all;
    for (const auto& [name, tensor] : tensors)
      for (const StoredPiece& piece : tensor.pieces)
        all[piece.file][piece_name(name, tensor.shape.shape, piece.box)] = {tensor.shape.dtype,
                                                                            piece.box.shape, piece.offset};
    return all;
  }
  const Tensor& tensor(const std::string& name) const {
    auto found = tensors.end();
    if (weights == CheckpointWeights::kAverage) found = tensors.find(average_name(name));
    if (found == tensors.end()) found = tensors.find(name);
    if (found == tensors.end()) {
      fail(ExitCode::kUnusable, "[checkpoint] {} has no tensor '{}' among its {}", info.path, name,
           names.size());
    }
    return found->second;
  }
};

CheckpointReader::CheckpointReader(const CheckpointInfo& info, CheckpointWeights weights)
    : state_(std::make_unique<State>()) {
  if (weights == CheckpointWeights::kAverage && !has_average(info))
    fail(ExitCode::kUnusable,
         "[checkpoint] {} keeps no average of the weights: expected a checkpoint of a run with ema.half_life "
         "or ema.decay, after ema.start; without --ema its trained weights are read",
         info.path);
  state_->info = info;
  state_->weights = weights;
  Manifest manifest = manifest_from_json(info.manifest, info.path);
  for (FileRecord& file : manifest.files) {
    const std::string name = file.name;
    state_->files.emplace(name, VerifiedFile(info.path + "/" + name, std::move(file), info.read));
  }
  for (TensorRecord& record : manifest.tensors) {
    Tensor tensor{.shape = {.name = record.name, .dtype = record.dtype, .shape = record.shape}};
    tensor.shape.num_bytes = safetensors_num_bytes(record.dtype, record.shape, info.path);
    for (TensorPiece& piece : record.pieces)
      tensor.pieces.push_back({std::move(piece.file), piece.offset, piece.box()});
    std::sort(tensor.pieces.begin(), tensor.pieces.end(), [](const StoredPiece& a, const StoredPiece& b) {
      return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
    });
    state_->names.push_back(record.name);
    state_->tensors.emplace(record.name, std::move(tensor));
  }
}

CheckpointReader::~CheckpointReader() = default;

const CheckpointInfo& CheckpointReader::info() const { return state_->info; }

bool CheckpointReader::has(const std::string& name) const { return state_->tensors.count(name) > 0; }

const TensorBytes& CheckpointReader::describe(const std::string& name) const {
  return state_->tensor(name).shape;
}

std::vector<std::string> CheckpointReader::names() const { return state_->names; }

void CheckpointReader::read(const std::string& name, void* data, int64_t num_bytes) const {
  read_box(name, whole_box(describe(name).shape), data, num_bytes);
}

void CheckpointReader::read_box(const std::string& name, const Box& box, void* data,
                                int64_t num_bytes) const {
  const Tensor& tensor = state_->tensor(name);
  TYCHO_CHECK(lies_in(box, tensor.shape.shape), "[checkpoint] expected {} of tensor '{}', which is [{}]",
              box_text(box), name, fmt::join(tensor.shape.shape, ", "));
  const int64_t width = safetensors_dtype_bytes(tensor.shape.dtype);
  TYCHO_CHECK(num_bytes == volume(box) * width,
              "[checkpoint] tensor '{}' has {} bytes, but the buffer has {}", name, volume(box) * width,
              num_bytes);
  for (const StoredPiece& piece : tensor.pieces) {
    const Box part = common_box(piece.box, box);
    if (volume(part) == 0) continue;
    VerifiedFile& file = state_->file(piece.file);
    for_runs(part, piece.box, box, [&](int64_t i, int64_t j, int64_t n) {
      file.read(piece.offset + i * width, static_cast<char*>(data) + j * width, n * width);
    });
  }
}

bool CheckpointReader::has_file(const std::string& name) const { return state_->files.count(name) > 0; }

std::string CheckpointReader::read_text_file(const std::string& name) const {
  VerifiedFile& file = state_->file(name);
  std::string text(static_cast<size_t>(file.record().num_bytes), '\0');
  file.read(0, text.data(), file.record().num_bytes);
  return text;
}

void CheckpointReader::verify() const {
  const std::map<std::string, Entries> entries = state_->entries();
  std::vector<char> buffer(static_cast<size_t>(kHashBlockBytes));
  for (auto& [name, file] : state_->files) {
    Hasher hash;
    for (int64_t at = 0; at < file.record().num_bytes; at += kHashBlockBytes) {
      const int64_t n = std::min(kHashBlockBytes, file.record().num_bytes - at);
      file.read(at, buffer.data(), n);
      hash.update(buffer.data(), static_cast<size_t>(n));
    }
    if (hash.hex() != file.record().hash) {
      fail(ExitCode::kUnusable, "[checkpoint] {} is damaged: XXH3-128 {} is recorded, {} was read",
           file.path(), file.record().hash, hash.hex());
    }
    if (!name.ends_with(".safetensors")) continue;
    const auto of_file = entries.find(name);
    check_header(file, of_file == entries.end() ? Entries() : of_file->second);
  }
}

}  // namespace tycho
