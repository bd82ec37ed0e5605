// Code shared by attention's forward and backward on the CPU: tiles of 64 queries by 64 keys, and their
// scores.
#pragma once
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/philox_lanes.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/dropout_bits.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

inline constexpr int64_t kTileTokens = 64;  // queries, and keys, of a tile
inline constexpr float kInfinity = __builtin_inff();

/// Consecutive queries of a sequence: rows from `row` on, which are the tokens from `position` on.
struct Queries {
  int64_t row, position, count;
};

/// Returns the same shape with its spans filled in.
TYCHO_SIMD AttentionShape with_spans(AttentionShape shape) {
  if (shape.keys == 0) {
    shape.keys = shape.seq;
    shape.early = {0, shape.seq}, shape.late = {0, 0};
  }
  if (!shape.is_part()) shape.early_keys = {0, shape.keys}, shape.late_keys = {0, 0};
  return shape;
}

/// Consecutive keys of a sequence: the tokens from `token` on, in rows from `row` on.
struct KeyTile {
  int64_t row, token, count;
};

/// Tiles of the keys that are present: those of the early span, then those of the late one.
class KeyTiles {
 public:
  explicit KeyTiles(const AttentionShape& shape)
      : early_(shape.early_keys), late_(shape.late_keys), num_early_(ceil_div(early_.count, kTileTokens)) {}
  int64_t rows() const { return early_.count + late_.count; }
  int64_t count() const { return num_early_ + ceil_div(late_.count, kTileTokens); }
  KeyTile at(int64_t number) const {
    if (number < num_early_) return of(early_, 0, number * kTileTokens);
    return of(late_, early_.count, (number - num_early_) * kTileTokens);
  }

 private:
  static KeyTile of(const TokenSpan& span, int64_t row, int64_t first) {
    return {row + first, span.first + first, smaller(kTileTokens, span.count - first)};
  }
  TokenSpan early_, late_;
  int64_t num_early_;
};

/// Addresses of the rows of one sequence and one key head.
template <class T>
struct HeadRows {
  const AttentionShape& shape;
  const T* q;   // first query of the sequence
  const T* kv;  // first of the sequence's keys that are present
  int64_t q_step, kv_step;
  int64_t kv_head;

  HeadRows(const AttentionShape& of, const AttentionInputs& in, int64_t sequence, int64_t head)
      : shape(of),
        q(static_cast<const T*>(in.q) + sequence * of.seq * in.q_step),
        kv(static_cast<const T*>(in.kv) + sequence * (of.early_keys.count + of.late_keys.count) * in.kv_step),
        q_step(in.q_step),
        kv_step(in.kv_step),
        kv_head(head) {}
  const T* query(int64_t row, int64_t head) const { return q + row * q_step + head * shape.head_dim; }
  const T* key(int64_t row) const { return kv + row * kv_step + kv_head * shape.head_dim; }
  const T* value(int64_t row) const { return key(row) + shape.kv_heads * shape.head_dim; }
};

/// True if some query of a tile may see some of its keys, ignoring documents.
TYCHO_SIMD bool is_visible(const ScoreRules& rules, int64_t first_query, int64_t queries,
                           const KeyTile& keys) {
  return keys.token < first_query + queries &&
         (rules.window < 0 || keys.token + keys.count > first_query - rules.window);
}

/// True if some query of a tile may share a document with some of its keys.
TYCHO_SIMD bool share_documents(const int32_t* document_T, int64_t first_query, int64_t queries,
                                int64_t first_key, int64_t keys) {
  if (!document_T) return true;
  int32_t low_query = document_T[first_query], high_query = low_query;
  for (int64_t i = first_query; i < first_query + queries; ++i) {
    low_query = document_T[i] < low_query ? document_T[i] : low_query;
    high_query = document_T[i] > high_query ? document_T[i] : high_query;
  }
  bool shared = false;
  for (int64_t i = first_key; i < first_key + keys; ++i)
    shared |= document_T[i] >= low_query && document_T[i] <= high_query;
  return shared;
}

/// tanh with an absolute error of 1e-7.
TYCHO_SIMD Vec tanh(Vec x) { return 1.0f - 2.0f / (1.0f + exp(x + x)); }

/// Turns products of scaled queries with keys into scores: cap, positions, and -infinity for keys that a
/// query must not see. `cap_slope`, when not null, receives the cap's derivative. Columns beyond `keys`
/// become -infinity.
static void score_tile(const ScoreRules& rules, int64_t head, const int32_t* document_T, int64_t first_query,
                       int64_t queries, int64_t first_key, int64_t keys, float* scores, float* cap_slope) {
  const bool all_seen = first_key + kTileTokens <= first_query + 1 && keys == kTileTokens && !document_T &&
                        (rules.window < 0 || first_query + queries - 1 - first_key <= rules.window);
  if (all_seen && rules.softcap == 0.0f && !rules.alibi_H) return;
  const float slope = rules.alibi_H ? rules.alibi_H[head] : 0.0f;
  Ints lane_number;
  for (int lane = 0; lane < kLanes; ++lane) lane_number[lane] = lane;
  for (int64_t row = 0; row < queries; ++row) {
    const auto query = static_cast<int32_t>(first_query + row);
    const int32_t oldest = rules.window < 0 ? 0 : static_cast<int32_t>(larger(0, query - rules.window));
    for (int64_t column = 0; column < kTileTokens; column += kLanes) {
      float* at = scores + row * kTileTokens + column;
      Vec score = load(at, Full{});
      if (rules.softcap != 0.0f) {
        const Vec t = tanh(score / rules.softcap);
        score = t * rules.softcap;
        if (cap_slope) store(cap_slope + row * kTileTokens + column, 1.0f - t * t, Full{});
      }
      const Ints key = lane_number + static_cast<int32_t>(first_key + column);
      score += slope * __builtin_convertvector(key - query, Vec);
      Ints seen = (key <= query) & (key >= oldest) & (key < static_cast<int32_t>(first_key + keys));
      if (document_T)
        for (int lane = 0; lane < kLanes; ++lane)
          seen[lane] &=
              column + lane < keys && document_T[first_key + column + lane] == document_T[query] ? -1 : 0;
      store(at, seen ? score : broadcast(-kInfinity), Full{});
    }
  }
}

/// Returns the row of dropout's mask for the query at a position.
TYCHO_SIMD int64_t mask_row(const AttentionShape& shape, const ScoreRules& rules, int64_t sequence,
                            int64_t head, int64_t position) {
  const int64_t heads = rules.dropout_heads > 0 ? rules.dropout_heads : shape.heads;
  return (sequence * heads + head) * shape.keys + position;
}

/// Writes the factors of a row's keys of one block: 0 where dropout drops, else 1 / (1 - p).
TYCHO_SIMD void dropout_block(const ScoreRules& rules, const DropoutFactors& kept, int64_t row, int64_t block,
                              float* factors) {
  static_assert(kTileTokens == kDropoutBlock && kDropoutCounters % kLanes == 0);
  for (int64_t counter = 0; counter < kDropoutCounters; counter += kLanes) {
    const PhiloxWords words =
        philox_lanes(rules.dropout.key, static_cast<uint64_t>(block * kDropoutCounters + counter),
                     static_cast<uint64_t>(rules.dropout.first_row + row));
    for (int word = 0; word < 4; ++word)
      store(factors + word * kDropoutCounters + counter,
            words.at[word] >= kept.first_kept ? broadcast(kept.scale) : Vec{}, Full{});
  }
}

/// Writes the factors of a tile's probabilities. Tiles of spans may begin within a block.
TYCHO_SIMD void dropout_tile(const ScoreRules& rules, int64_t first_row, int64_t rows, int64_t first_key,
                             float* factors) {
  const DropoutFactors kept = dropout_factors(rules.dropout);
  const int64_t block = first_key / kDropoutBlock, inside = first_key % kDropoutBlock;
  for (int64_t row = 0; row < rows; ++row) {
    float* to = factors + row * kTileTokens;
    if (inside == 0) {
      dropout_block(rules, kept, first_row + row, block, to);
      continue;
    }
    float both[2 * kDropoutBlock];
    dropout_block(rules, kept, first_row + row, block, both);
    dropout_block(rules, kept, first_row + row, block + 1, both + kDropoutBlock);
    __builtin_memcpy(to, both + inside, kTileTokens * sizeof(float));
  }
}

/// Products of a tile of queries by keys without what the causal order hides: row i sees keys 0 to i + ahead.
class Triangle {
 public:
  Triangle(int64_t first_query, int64_t queries, int64_t first_key, int64_t keys)
      : queries_(queries), keys_(keys), ahead_(first_query - first_key) {}
  /// Returns how many keys the first `rows` queries see, all together.
  TYCHO_SIMD_MEMBER int64_t seen_keys(int64_t rows) const { return larger(0, smaller(keys_, ahead_ + rows)); }

  /// scores [queries, kTileTokens] = a [queries, depth] · keys_T [depth, kTileTokens], as far as queries see
  /// keys; 0 elsewhere.
  void scores(int64_t depth, TileLeft a, const float* keys_T, float* out) const {
    for (int64_t row = 0; row < queries_; row += kTileRows) {
      const int64_t rows = smaller(kTileRows, queries_ - row), width = tile_width(seen_keys(row + rows));
      float* to = out + row * kTileTokens;
      tile_product<false>(rows, width, depth, a.from_row(row), keys_T, kTileTokens, to, kTileTokens);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t column = width; column < kTileTokens; column += kLanes)
          store(to + i * kTileTokens + column, Vec{}, Full{});
    }
  }
  /// sums [queries, width] = p [queries, keys] · rows [keys, width], or += when Add, without keys that are
  /// not seen, where p is 0.
  template <bool Add>
  void sum_over_keys(int64_t width, const float* p, const float* rows_KW, float* sums) const {
    for (int64_t row = 0; row < queries_; row += kTileRows) {
      const int64_t rows = smaller(kTileRows, queries_ - row);
      tile_product<Add>(rows, width, seen_keys(row + rows), {p + row * kTileTokens, kTileTokens, 1}, rows_KW,
                        width, sums + row * width, width);
    }
  }
  /// sums [keys, width] += pᵀ [keys, queries] · rows [queries, width], without queries that do not see a key.
  void sum_over_queries(int64_t width, const float* p, const float* rows_QW, float* sums) const {
    for (int64_t key = 0; key < keys_; key += kTileRows) {
      const int64_t first = smaller(queries_, larger(0, key - ahead_));
      tile_product<true>(smaller(kTileRows, keys_ - key), width, queries_ - first,
                         {p + first * kTileTokens + key, 1, kTileTokens}, rows_QW + first * width, width,
                         sums + key * width, width);
    }
  }

 private:
  int64_t queries_, keys_, ahead_;
};

/// Computes the scores of a tile: products of `queries` packed rows (scaled) with the transposed keys, then
/// the rules.
TYCHO_SIMD void scores_of(const ScoreRules& rules, int64_t head, int64_t head_dim, const int32_t* document_T,
                          const float* q, int64_t q_width, int64_t first_query, int64_t queries,
                          const float* keys_T, int64_t first_key, int64_t keys, float* scores,
                          float* cap_slope) {
  Triangle(first_query, queries, first_key, keys).scores(head_dim, {q, q_width, 1}, keys_T, scores);
  score_tile(rules, head, document_T, first_query, queries, first_key, keys, scores, cap_slope);
}

}  // namespace tycho::TYCHO_ISA
