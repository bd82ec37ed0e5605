// The merges of a BPE vocabulary, and applying them to one piece of text.
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

/// Which pairs of tokens merge, in which order, into what. An open-addressing table: two loads for most
/// look-ups.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = UINT32_MAX;  // UINT32_MAX: the pair does not merge
    int32_t token = -1;
  };
  explicit MergeTable(size_t expected);
  /// A pair that is there already gets the new rank and token. Tokens are >= 0.
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

/// Remembers the tokens of pieces seen before. Fixed size: a new piece takes the place of an old one.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 31, kMaxTokens = 7;
  struct alignas(64) Entry {
    std::array<uint64_t, 4> key{};  // the bytes, and their number in the last byte; all zero: empty
    int32_t num_tokens = 0;
    std::array<int32_t, kMaxTokens> tokens{};
  };
  /// The kernel provides its memory page by page, as entries are written: a tokenizer for a few texts needs
  /// little.
  PieceCache();
  /// Where the piece (1..kMaxBytes bytes) is or belongs; `hit` says which. An entry that missed must be
  /// filled.
  Entry& find(std::string_view piece, bool& hit);

 private:
  struct Unmap {
    void operator()(Entry* entries) const;
  };
  std::unique_ptr<Entry[], Unmap> entries_;
};

/// Lets maps of strings be searched with views.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// Immutable after construction but for its caches; safe to use from several threads.
class BpeModel {
 public:
  struct Parts {
    Parts() { byte_tokens.fill(-1); }
    std::array<int32_t, 256> byte_tokens;  // the token of each single byte; -1 for none
    /// Without it a piece is its bytes. With it, the characters that are here; others are their bytes if all
    /// have tokens, else `unknown`.
    bool by_character = false;
    std::unordered_map<uint32_t, int32_t> character_tokens;
    int32_t unknown = -1;       // stands for what has no token; -1: an Error
    bool fuse_unknown = false;  // one for neighbours together
    MergeTable merges{0};
    /// With ignore_merges: pieces (bytes) that are one token whatever the merges say. Else empty.
    std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> whole_pieces;
  };
  explicit BpeModel(Parts parts);

  /// Lends a cache to one caller for as long as it lives.
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

  /// Appends the tokens of one piece. Throws Error (kUnusable) when a part of it has no token and nothing
  /// stands for it.
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
