// Merges of a BPE vocabulary, and their application to one piece of text.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tycho {

/// Table of merges: maps a pair of tokens to its rank and result. Uses open addressing: two loads for most
/// look-ups.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = UINT32_MAX;  // UINT32_MAX: the pair does not merge
    int32_t token = -1;
  };
  explicit MergeTable(size_t expected);
  /// Sets the merge of a pair; overwrites an existing one. Requires tokens >= 0.
  void set(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    Merge merge;
  };
  size_t slot_of(uint64_t pair) const;
  std::vector<Slot> slots_;
  size_t mask_;
};

/// Caches the tokens of pieces. Its size is fixed: a new piece replaces an old one.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 31, kMaxTokens = 7;
  struct alignas(64) Entry {
    std::array<uint64_t, 4> key{};  // the bytes of the piece, and their number in the last byte; all zero:
                                    // empty
    int32_t num_tokens = 0;
    std::array<int32_t, kMaxTokens> tokens{};
  };
  /// The kernel provides the memory page by page, as entries are written, so a tokenizer for a few texts
  /// needs little.
  PieceCache();
  /// Returns the entry of the piece (1..kMaxBytes bytes); `hit` is true if it holds the piece. If it is
  /// false, the caller must fill the entry.
  Entry& find(std::string_view piece, bool& hit);

 private:
  struct Unmap {
    void operator()(Entry* entries) const;
  };
  std::unique_ptr<Entry[], Unmap> entries_;
};

/// Hash with which maps of strings can be searched by string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// Immutable after construction except for its caches; safe to use from several threads.
class BpeModel {
 public:
  struct Parts {
    Parts() { byte_tokens.fill(-1); }
    std::array<int32_t, 256> byte_tokens;  // token of each single byte; -1 if it has none
    /// If false, a piece is split into bytes. If true, it is split into the characters of character_tokens;
    /// other characters are split into bytes if all of these have tokens, else become `unknown`.
    bool by_character = false;
    std::unordered_map<uint32_t, int32_t> character_tokens;
    int32_t unknown = -1;       // replaces characters and bytes without a token; -1: these are an Error
    bool fuse_unknown = false;  // one `unknown` for adjacent unknown characters
    MergeTable merges{0};
    /// With ignore_merges: pieces (bytes) that are one token whatever the merges say. Else empty.
    std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> whole_pieces;
  };
  explicit BpeModel(Parts parts);

  /// Lends a cache to one caller; the destructor returns it.
  class CacheLease {
   public:
    explicit CacheLease(const BpeModel& model);
    ~CacheLease();
    CacheLease(const CacheLease&) = delete;
    PieceCache& operator*() { return *cache_; }

   private:
    const BpeModel& model_;
    std::unique_ptr<PieceCache> cache_;
  };

  /// Appends the tokens of one piece. Throws Error (kUnusable) when a part of it has no token and `unknown`
  /// is -1.
  void encode_piece(std::string_view piece, PieceCache& cache, std::vector<int32_t>& out) const;

 private:
  void merge_piece(std::string_view piece, std::vector<int32_t>& out) const;
  void append_bytes(std::string_view piece, std::vector<int32_t>& out) const;
  void append_characters(std::string_view piece, std::vector<int32_t>& out) const;
  void append_unknown(std::string_view bytes, bool& after_unknown, std::vector<int32_t>& out) const;
  void merge_short(std::vector<int32_t>& tokens, size_t begin) const;
  void merge_long(std::vector<int32_t>& tokens, size_t begin) const;

  Parts parts_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<PieceCache>> idle_caches_;
};

}  // namespace tycho
