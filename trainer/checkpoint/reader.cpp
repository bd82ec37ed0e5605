// Hands out bytes of a checkpoint, block by block, only after their hash was right.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace tycho {
namespace {

struct Tensor {
  TensorBytes shape;
  std::vector<TensorPiece> pieces;
};

[[noreturn]] void fail_hash(const std::string& path, int64_t block, const std::string& wanted,
                            const std::string& found) {
  fail(ExitCode::kUnusable,
       "[checkpoint] {} is damaged in bytes {} to {}: XXH3-128 {} is recorded, {} was read; use an older "
       "checkpoint",
       path, block * kHashBlockBytes, (block + 1) * kHashBlockBytes, wanted, found);
}

/// Reads pieces of one file; the last block that was needed only in part is kept for its neighbours.
class VerifiedFile {
 public:
  VerifiedFile(std::string path, FileRecord record) : path_(std::move(path)), record_(std::move(record)) {}
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
  int64_t cached_block_ = -1;
  std::vector<char> cached_;
};

}  // namespace

struct CheckpointReader::State {
  CheckpointInfo info;
  std::vector<std::string> names;
  std::unordered_map<std::string, Tensor> tensors;
  std::unordered_map<std::string, VerifiedFile> files;

  VerifiedFile& file(const std::string& name) {
    const auto found = files.find(name);
    if (found == files.end()) fail(ExitCode::kUnusable, "[checkpoint] {} has no file '{}'", info.path, name);
    return found->second;
  }
  /// The shard's own header must describe the same tensors at the same places as COMMIT.
  void check_header(const VerifiedFile& file) const {
    const SafetensorsHeader header = read_safetensors_header(file.path());
    size_t num_expected = 0;
    for (const auto& [name, tensor] : tensors)
      num_expected += tensor.pieces.front().file == file.record().name;
    bool same = header.entries.size() == num_expected;
    for (const SafetensorsEntry& entry : header.entries) {
      const auto found = tensors.find(entry.name);
      same = same && found != tensors.end() && found->second.shape.dtype == entry.dtype &&
             found->second.shape.shape == entry.shape &&
             found->second.pieces.front().file == file.record().name &&
             found->second.pieces.front().offset == header.data_start + entry.begin;
    }
    if (!same)
      fail(ExitCode::kUnusable, "[checkpoint] the header of {} and COMMIT name different tensors",
           file.path());
  }
  const Tensor& tensor(const std::string& name) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      fail(ExitCode::kUnusable, "[checkpoint] {} has no tensor '{}' among its {}", info.path, name,
           names.size());
    }
    return found->second;
  }
};

CheckpointReader::CheckpointReader(const CheckpointInfo& info) : state_(std::make_unique<State>()) {
  state_->info = info;
  Manifest manifest = manifest_from_json(info.manifest, info.path);
  for (FileRecord& file : manifest.files) {
    const std::string name = file.name;
    state_->files.emplace(name, VerifiedFile(info.path + "/" + name, std::move(file)));
  }
  for (TensorRecord& record : manifest.tensors) {
    Tensor tensor{.shape = {.name = record.name, .dtype = record.dtype, .shape = record.shape}};
    tensor.shape.num_bytes = safetensors_num_bytes(record.dtype, record.shape, info.path);
    tensor.pieces = std::move(record.pieces);
    if (tensor.pieces.size() != 1) {
      fail(ExitCode::kUnusable,
           "[checkpoint] {}: tensor '{}' is in {} pieces, but this version reads only whole tensors",
           info.path, record.name, tensor.pieces.size());
    }
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
  const Tensor& tensor = state_->tensor(name);
  TYCHO_CHECK(num_bytes == tensor.shape.num_bytes,
              "[checkpoint] tensor '{}' has {} bytes, but the buffer has {}", name, tensor.shape.num_bytes,
              num_bytes);
  const TensorPiece& piece = tensor.pieces.front();
  state_->file(piece.file).read(piece.offset, static_cast<char*>(data), num_bytes);
}

bool CheckpointReader::has_file(const std::string& name) const { return state_->files.count(name) > 0; }

std::string CheckpointReader::read_text_file(const std::string& name) const {
  VerifiedFile& file = state_->file(name);
  std::string text(static_cast<size_t>(file.record().num_bytes), '\0');
  file.read(0, text.data(), file.record().num_bytes);
  return text;
}

void CheckpointReader::verify() const {
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
    if (name.ends_with(".safetensors")) state_->check_header(file);
  }
}

}  // namespace tycho
