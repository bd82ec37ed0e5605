// Finds most pieces in the cache. Short pieces are merged by scanning and long ones with a heap, so that a
// megabyte without a space takes n log n.
#include "trainer/data/tokenizer/bpe.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <queue>

#include "trainer/base/error.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

constexpr size_t kCacheEntries = 1 << 15;  // 2 MiB per thread
constexpr size_t kScanLimit = 48;          // tokens; above, the heap is faster
constexpr uint64_t kMix = 0x9E3779B97F4A7C15ull;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(size_t expected) : slots_(std::bit_ceil(expected * 2 + 2)), mask_(slots_.size() - 1) {}

size_t MergeTable::slot_of(uint64_t pair) const {
  const uint64_t mixed = (pair ^ pair >> 29) * kMix;
  return (mixed >> 32) & mask_;
}

void MergeTable::set(int32_t left, int32_t right, Merge merge) {
  const uint64_t pair = pair_key(left, right);
  size_t i = slot_of(pair);
  while (slots_[i].pair != UINT64_MAX && slots_[i].pair != pair) i = (i + 1) & mask_;
  slots_[i] = {pair, merge};
}

MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_key(left, right);
  for (size_t i = slot_of(pair);; i = (i + 1) & mask_) {
    if (slots_[i].pair == pair) return slots_[i].merge;
    if (slots_[i].pair == UINT64_MAX) return {};
  }
}

PieceCache::PieceCache() {
  void* memory = ::mmap(nullptr, kCacheEntries * sizeof(Entry), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  entries_.reset(static_cast<Entry*>(memory));
}

void PieceCache::Unmap::operator()(Entry* entries) const { ::munmap(entries, kCacheEntries * sizeof(Entry)); }

PieceCache::Entry& PieceCache::find(std::string_view piece, bool& hit) {
  std::array<uint64_t, 4> key{};
  std::memcpy(key.data(), piece.data(), piece.size());
  key[3] |= static_cast<uint64_t>(piece.size()) << 56;
  uint64_t hash = (key[0] ^ key[3]) * kMix;
  hash = (hash ^ hash >> 32 ^ key[1]) * kMix;
  hash = (hash ^ hash >> 32 ^ key[2]) * kMix;
  Entry& entry = entries_[hash >> 32 & (kCacheEntries - 1)];
  hit = entry.key == key;
  if (!hit) entry.key = key;
  return entry;
}

BpeModel::BpeModel(Parts parts) : parts_(std::move(parts)) {}

BpeModel::CacheLease::CacheLease(const BpeModel& model) : model_(model) {
  {
    const std::lock_guard lock(model_.mutex_);
    if (!model_.idle_caches_.empty()) {
      cache_ = std::move(model_.idle_caches_.back());
      model_.idle_caches_.pop_back();
    }
  }
  if (!cache_) cache_ = std::make_unique<PieceCache>();
}

BpeModel::CacheLease::~CacheLease() {
  const std::lock_guard lock(model_.mutex_);
  model_.idle_caches_.push_back(std::move(cache_));
}

void BpeModel::encode_piece(std::string_view piece, PieceCache& cache, std::vector<int32_t>& out) const {
  if (piece.size() > PieceCache::kMaxBytes) return merge_piece(piece, out);
  bool hit;
  PieceCache::Entry& entry = cache.find(piece, hit);
  if (hit) {
    out.insert(out.end(), entry.tokens.begin(), entry.tokens.begin() + entry.num_tokens);
    return;
  }
  const size_t begin = out.size();
  merge_piece(piece, out);
  const size_t count = out.size() - begin;
  if (count > PieceCache::kMaxTokens) {
    entry.key = {};
    return;
  }
  entry.num_tokens = static_cast<int32_t>(count);
  std::copy(out.begin() + static_cast<ptrdiff_t>(begin), out.end(), entry.tokens.begin());
}

void BpeModel::merge_piece(std::string_view piece, std::vector<int32_t>& out) const {
  if (!parts_.whole_pieces.empty()) {
    const auto whole = parts_.whole_pieces.find(piece);
    if (whole != parts_.whole_pieces.end()) return out.push_back(whole->second);
  }
  const size_t begin = out.size();
  parts_.by_character ? append_characters(piece, out) : append_bytes(piece, out);
  if (out.size() - begin <= kScanLimit) {
    merge_short(out, begin);
  } else {
    merge_long(out, begin);
  }
}

void BpeModel::append_unknown(std::string_view bytes, bool& after_unknown, std::vector<int32_t>& out) const {
  if (parts_.unknown < 0)
    fail(ExitCode::kUnusable, "[tokenizer] the vocabulary has no token for the bytes {:02x} and no unk_token",
         fmt::join(std::vector<uint8_t>(bytes.begin(), bytes.end()), " "));
  if (!after_unknown || !parts_.fuse_unknown) out.push_back(parts_.unknown);
  after_unknown = true;
}

void BpeModel::append_bytes(std::string_view piece, std::vector<int32_t>& out) const {
  bool after_unknown = false;
  for (size_t i = 0; i < piece.size(); ++i) {
    const int32_t token = parts_.byte_tokens[static_cast<uint8_t>(piece[i])];
    if (token < 0) {
      append_unknown(piece.substr(i, 1), after_unknown, out);
      continue;
    }
    after_unknown = false;
    out.push_back(token);
  }
}

void BpeModel::append_characters(std::string_view piece, std::vector<int32_t>& out) const {
  bool after_unknown = false;
  for (size_t at = 0; at < piece.size();) {
    uint32_t code;
    const size_t length = decode_utf8(piece.data() + at, piece.size() - at, code);
    const std::string_view bytes = piece.substr(at, length);
    at += length;
    const bool broken = code == 0xFFFD && length == 1;
    const auto found = broken ? parts_.character_tokens.end() : parts_.character_tokens.find(code);
    if (found != parts_.character_tokens.end()) {
      out.push_back(found->second);
      after_unknown = false;
    } else if (std::all_of(bytes.begin(), bytes.end(),
                           [&](char c) { return parts_.byte_tokens[static_cast<uint8_t>(c)] >= 0; })) {
      for (const char c : bytes) out.push_back(parts_.byte_tokens[static_cast<uint8_t>(c)]);
      after_unknown = false;
    } else {
      append_unknown(bytes, after_unknown, out);
    }
  }
}

/// Merges the pair of lowest rank, leftmost first, until none is left. Replaces tokens[begin..].
void BpeModel::merge_short(std::vector<int32_t>& tokens, size_t begin) const {
  std::array<MergeTable::Merge, kScanLimit> merges;  // merges[i]: of tokens i and i + 1
  int32_t* token = tokens.data() + begin;
  size_t count = tokens.size() - begin;
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = parts_.merges.find(token[i], token[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == UINT32_MAX) break;
    token[best] = merges[best].token;
    --count;
    for (size_t i = best + 1; i < count; ++i) token[i] = token[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best > 0) merges[best - 1] = parts_.merges.find(token[best - 1], token[best]);
    if (best + 1 < count) merges[best] = parts_.merges.find(token[best], token[best + 1]);
  }
  tokens.resize(begin + count);
}

/// Merges as merge_short does, with a heap of candidate merges over a linked list.
void BpeModel::merge_long(std::vector<int32_t>& tokens, size_t begin) const {
  struct Candidate {
    uint32_t rank;
    uint32_t position;
    int32_t left, right, token;
    bool operator<(const Candidate& b) const {
      return rank != b.rank ? rank > b.rank : position > b.position;
    }
  };
  const auto count = static_cast<int64_t>(tokens.size() - begin);
  int32_t* token = tokens.data() + begin;  // -1: merged into its left neighbour
  std::vector<int64_t> previous(count), next(count);
  std::priority_queue<Candidate> heap;
  const auto propose = [&](int64_t left, int64_t right) {
    const MergeTable::Merge merge = parts_.merges.find(token[left], token[right]);
    if (merge.rank == UINT32_MAX) return;
    heap.push({merge.rank, static_cast<uint32_t>(left), token[left], token[right], merge.token});
  };
  for (int64_t i = 0; i < count; ++i) previous[i] = i - 1, next[i] = i + 1;
  for (int64_t i = 0; i + 1 < count; ++i) propose(i, i + 1);
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    const int64_t left = top.position, right = next[left];
    if (right == count || token[left] != top.left || token[right] != top.right) continue;
    token[left] = top.token;
    token[right] = -1;
    next[left] = next[right];
    if (next[left] < count) previous[next[left]] = left;
    if (previous[left] >= 0) propose(previous[left], left);
    if (next[left] < count) propose(left, next[left]);
  }
  const auto first = tokens.begin() + static_cast<ptrdiff_t>(begin);
  tokens.erase(std::remove(first, tokens.end(), -1), tokens.end());
}

}  // namespace tycho
