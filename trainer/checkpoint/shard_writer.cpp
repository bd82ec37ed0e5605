// The pipeline behind write_shard: a ring of aligned blocks between a copying thread and the writing one.
#include "trainer/checkpoint/shard_writer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/page_memory.h"
#include "trainer/checkpoint/safetensors.h"

namespace tycho {
namespace {

// One block is one write request and one hash. The ring rides out a pause of the copying thread, which shares
// its cores with a training.
constexpr int kNumBlocks = 4;
constexpr size_t kBlockBytes = kHashBlockBytes;
// Small enough to be still in the cache when it is hashed.
constexpr size_t kCopyBytes = size_t{128} << 10;

struct Piece {
  const char* data;
  size_t num_bytes;
  const TensorBytes* made = nullptr;  // the tensor whose `fill` produces the data

  void copy(size_t offset, char* to, size_t n) const {
    if (n == 0) return;
    if (made != nullptr)
      made->fill(static_cast<int64_t>(offset), to, static_cast<int64_t>(n));
    else
      std::memcpy(to, data + offset, n);
  }
};

/// Cuts pieces of memory into blocks on a thread of its own and hashes them; next() returns them in order.
class BlockSource {
 public:
  explicit BlockSource(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
    size_t total = 0;
    for (const Piece& piece : pieces_) total += piece.num_bytes;
    for (Block& block : ring_) {
      const size_t num_bytes = std::min(total, kBlockBytes);
      block.memory = page_memory(num_bytes);
      total -= num_bytes;
    }
    thread_ = std::thread([this] { run(); });
  }
  ~BlockSource() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;

  /// Returns the next block, valid until the next call; empty at the end.
  std::string_view next() {
    std::unique_lock lock(mutex_);
    if (handed_out_) ++num_taken_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return num_filled_ > num_taken_ || finished_; });
    handed_out_ = num_filled_ > num_taken_;
    if (!handed_out_ && failure_) std::rethrow_exception(failure_);
    if (!handed_out_) return {};
    const Block& block = ring_[static_cast<size_t>(num_taken_ % kNumBlocks)];
    return {block.memory.get(), block.num_bytes};
  }
  /// Returns the hash of all blocks. Requires that next() has returned an empty one.
  std::string file_hash() const { return file_hash_.hex(); }
  const std::vector<std::string>& block_hashes() const { return block_hashes_; }

 private:
  struct Block {
    PageMemory memory;
    size_t num_bytes = 0;
  };

  void run() {
    try {
      fill_all();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      finished_ = true;
      changed_.notify_all();
    }
  }

  void fill_all() {
    for (int64_t i = 0;; ++i) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || i < num_taken_ + kNumBlocks; });
        if (stopped_) return;
      }
      Block& block = ring_[static_cast<size_t>(i % kNumBlocks)];
      fill(block);
      const std::lock_guard lock(mutex_);
      if (block.num_bytes > 0) ++num_filled_;
      finished_ = block.num_bytes < kBlockBytes;
      changed_.notify_all();
      if (finished_) return;
    }
  }

  void fill(Block& block) {
    Hasher block_hash;
    block.num_bytes = 0;
    while (block.num_bytes < kBlockBytes && piece_ < pieces_.size()) {
      const Piece& piece = pieces_[piece_];
      const size_t n = std::min({piece.num_bytes - offset_, kBlockBytes - block.num_bytes, kCopyBytes});
      char* to = block.memory.get() + block.num_bytes;
      piece.copy(offset_, to, n);
      block_hash.update(to, n);
      file_hash_.update(to, n);
      block.num_bytes += n;
      offset_ += n;
      if (offset_ == piece.num_bytes) ++piece_, offset_ = 0;
    }
    if (block.num_bytes > 0) block_hashes_.push_back(block_hash.hex());
  }

  std::vector<Piece> pieces_;
  size_t piece_ = 0, offset_ = 0;
  std::array<Block, kNumBlocks> ring_;
  std::vector<std::string> block_hashes_;
  Hasher file_hash_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_filled_ = 0, num_taken_ = 0;
  bool handed_out_ = false, finished_ = false, stopped_ = false;
  std::exception_ptr failure_;  // error of a tensor's `fill`
  std::thread thread_;
};

FileRecord write_pieces(FileOps& files, const std::string& dir, const std::string& name,
                        std::vector<Piece> pieces, bool direct) {
  const std::string path = dir + "/" + name;
  FileRecord record{.name = name};
  BlockSource source(std::move(pieces));
  const auto file = files.create(path, direct);
  for (std::string_view block = source.next(); !block.empty(); block = source.next()) {
    file->write(block.data(), block.size());
    record.num_bytes += static_cast<int64_t>(block.size());
  }
  file->sync();
  file->close();
  record.hash = source.file_hash();
  record.blocks = source.block_hashes();
  // A network file system may report a lost write nowhere else.
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || size != static_cast<uint64_t>(record.num_bytes)) {
    fail(ExitCode::kStorage, "[checkpoint] {} has {} bytes after {} were written", path,
         error ? error.message() : std::to_string(size), record.num_bytes);
  }
  return record;
}

TensorRecord record_of(const TensorBytes& tensor, const std::string& file, int64_t offset) {
  TensorPiece piece{.file = file, .offset = offset, .num_bytes = tensor.num_bytes};
  const Box box = tensor.box();
  for (size_t d = 0; d < box.shape.size(); ++d)
    piece.extent.emplace_back(box.offsets[d], box.offsets[d] + box.shape[d]);
  return {.name = tensor.name,
          .dtype = tensor.dtype,
          .shape = tensor.whole_shape(),
          .pieces = {std::move(piece)}};
}

SafetensorsEntry entry_of(const TensorBytes& tensor, int64_t begin) {
  TYCHO_CHECK(tensor.num_bytes == safetensors_num_bytes(tensor.dtype, tensor.shape, tensor.name),
              "[checkpoint] tensor {} has {} bytes, its shape and dtype need another number", tensor.name,
              tensor.num_bytes);
  TYCHO_CHECK(lies_in(tensor.box(), tensor.whole_shape()),
              "[checkpoint] {} of tensor {} is no part of its shape [{}]", box_text(tensor.box()),
              tensor.name, fmt::join(tensor.whole_shape(), ", "));
  return {piece_name(tensor.name, tensor.whole_shape(), tensor.box()), tensor.dtype, tensor.shape, begin,
          begin + tensor.num_bytes};
}

}  // namespace

std::string rank_file_name(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }

WrittenShard write_shard(FileOps& files, const std::string& dir, const std::string& name,
                         const std::vector<TensorBytes>& tensors, int64_t data_alignment) {
  std::vector<const TensorBytes*> order;
  for (const TensorBytes& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorBytes* a, const TensorBytes* b) {
    return safetensors_dtype_bytes(a->dtype) > safetensors_dtype_bytes(b->dtype);
  });
  std::vector<SafetensorsEntry> entries;
  int64_t at = 0;
  for (const TensorBytes* tensor : order) {
    entries.push_back(entry_of(*tensor, at));
    at += tensor->num_bytes;
  }
  const std::string prefix = safetensors_prefix(entries, {{"format", "pt"}}, data_alignment);
  std::vector<Piece> pieces = {{prefix.data(), prefix.size()}};
  WrittenShard shard;
  for (size_t i = 0; i < order.size(); ++i) {
    pieces.push_back({static_cast<const char*>(order[i]->data), static_cast<size_t>(order[i]->num_bytes),
                      order[i]->fill ? order[i] : nullptr});
    shard.tensors.push_back(
        record_of(*order[i], name, static_cast<int64_t>(prefix.size()) + entries[i].begin));
  }
  shard.file = write_pieces(files, dir, name, std::move(pieces), /*direct=*/true);
  return shard;
}

void add_shards(std::vector<WrittenShard> shards, Manifest& manifest) {
  std::unordered_map<std::string, size_t> places;
  for (WrittenShard& shard : shards) {
    manifest.files.push_back(std::move(shard.file));
    for (TensorRecord& one : shard.tensors) {
      const auto [place, is_new] = places.try_emplace(one.name, manifest.tensors.size());
      if (is_new) {
        manifest.tensors.push_back(std::move(one));
        continue;
      }
      TensorRecord& tensor = manifest.tensors[place->second];
      TYCHO_CHECK(tensor.dtype == one.dtype && tensor.shape == one.shape,
                  "[checkpoint] pieces of {} are of two tensors: {} [{}] and {} [{}]", one.name, tensor.dtype,
                  fmt::join(tensor.shape, ", "), one.dtype, fmt::join(one.shape, ", "));
      for (TensorPiece& piece : one.pieces) tensor.pieces.push_back(std::move(piece));
    }
  }
}

FileRecord write_text(FileOps& files, const std::string& dir, const std::string& name,
                      const std::string& text) {
  return write_pieces(files, dir, name, {{text.data(), text.size()}}, /*direct=*/false);
}

}  // namespace tycho
