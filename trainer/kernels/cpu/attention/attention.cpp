// Attention on the CPU, forward: tiles with an online softmax, so that T x T scores never exist.
//                                                   (Dao et al. 2022, arXiv:2205.14135)
#include "trainer/kernels/cpu/attention/attention_tiles.h"
#include "trainer/kernels/cpu/kernels.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Least number of query rows of a block of work, so that laying out the keys is a small part of it.
constexpr int64_t kBlockQueries = 256;

/// Running softmax of a tile's rows.
struct Running {
  float most[kTileTokens], sum[kTileTokens];
};

/// Replaces scores by exp(score - maximum so far), and rescales earlier sums when a row's maximum has grown.
void soften(const Triangle& seen, int64_t queries, int64_t width, bool first, float* scores, Running& running,
            float* out) {
  for (int64_t row = 0; row < queries; ++row) {
    float* score = scores + row * kTileTokens;
    const int64_t keys = seen.seen_keys(row + 1);
    Vec tile_most = load(score, Full{});
    for (int64_t i = kLanes; i < keys; i += kLanes) tile_most = at_least(load(score + i, Full{}), tile_most);
    const float before = first ? -kInfinity : running.most[row];
    const float most = __builtin_fmaxf(before, max_lanes(tile_most));
    const float shift = most == -kInfinity ? 0.0f : most;  // nothing seen yet: every term is 0
    Vec sum{};
    for (int64_t i = 0; i < keys; i += kLanes) {
      const Vec p = exp(load(score + i, Full{}) - shift);
      sum += p;
      store(score + i, p, Full{});
    }
    for (int64_t i = ceil_div(keys, kLanes) * kLanes; i < kTileTokens; i += kLanes)
      store(score + i, Vec{}, Full{});
    running.most[row] = most;
    if (first) {
      running.sum[row] = sum_lanes(sum);
      continue;
    }
    const float kept = exp(broadcast(before - shift))[0];
    running.sum[row] = running.sum[row] * kept + sum_lanes(sum);
    if (kept == 1.0f) continue;
    for (int64_t i = 0; i < width; i += kLanes)
      store(out + row * width + i, load(out + row * width + i, Full{}) * kept, Full{});
  }
}

template <class T>
struct Forward {
  bool is_part;
  AttentionShape shape;
  ScoreRules rules;
  AttentionInputs in;
  void* out;  // T, or fp32 of a part
  float* log_sum_exp_BHT;

  int64_t group() const { return shape.heads / shape.kv_heads; }
  /// Returns the index of a query's row in [B H T].
  int64_t first_row(int64_t sequence, int64_t head, int64_t row) const {
    return (sequence * shape.heads + head) * shape.seq + row;
  }
  int64_t block_tokens() const {
    return ceil_div(larger(kTileTokens, kBlockQueries / group()), kTileTokens) * kTileTokens;
  }

  /// Computes queries of a sequence, for all query heads of one key head.
  void block(int64_t sequence, int64_t kv_head, Queries block) const {
    const HeadRows<T> rows(shape, in, sequence, kv_head);
    const int64_t d = shape.head_dim, width = tile_width(d);
    const KeyTiles tiles(shape);
    int64_t first_tile = 0, last_tile = tiles.count();
    const auto sees = [&](int64_t tile) {
      return is_visible(rules, block.position, block.count, tiles.at(tile));
    };
    while (first_tile < last_tile && !sees(first_tile)) ++first_tile;
    while (first_tile < last_tile && !sees(last_tile - 1)) --last_tile;
    const int64_t key_tiles = last_tile - first_tile;
    const int64_t q_floats = kTileTokens * width, k_floats = d * kTileTokens;
    auto* memory = static_cast<float*>(thread_memory(
        (key_tiles * (k_floats + q_floats) + 2 * q_floats + 2 * kTileTokens * kTileTokens) * 4));
    float* keys_T = memory;
    float* values = keys_T + key_tiles * k_floats;
    float* q = values + key_tiles * q_floats;
    float* sum = q + q_floats;
    float* scores = sum + q_floats;
    float* factors = scores + kTileTokens * kTileTokens;
    for (int64_t tile = 0; tile < key_tiles; ++tile) {
      const KeyTile key = tiles.at(first_tile + tile);
      transpose_tile<kTileTokens>(rows.key(key.row), rows.kv_step, key.count, d, keys_T + tile * k_floats);
      copy_tile(rows.value(key.row), rows.kv_step, key.count, d, 1.0f, values + tile * q_floats, width);
    }
    const int32_t* document_T = rules.document_BT ? rules.document_BT + sequence * shape.keys : nullptr;
    for (int64_t head = kv_head * group(); head < (kv_head + 1) * group(); ++head)
      for (int64_t done = 0; done < block.count; done += kTileTokens) {
        const int64_t row = block.row + done, query = block.position + done;
        const int64_t queries = smaller(kTileTokens, block.count - done);
        copy_tile(rows.query(row, head), rows.q_step, queries, d, rules.scale, q, width);
        Running running;
        bool is_first = true;
        for (int64_t tile = 0; tile < key_tiles; ++tile) {
          const KeyTile key = tiles.at(first_tile + tile);
          if (!is_visible(rules, query, queries, key)) continue;
          if (!share_documents(document_T, query, queries, key.token, key.count)) continue;
          scores_of(rules, head, d, document_T, q, width, query, queries, keys_T + tile * k_floats, key.token,
                    key.count, scores, nullptr);
          const Triangle seen(query, queries, key.token, key.count);
          soften(seen, queries, width, is_first, scores, running, sum);
          if (rules.dropout.p > 0)
            drop(mask_row(shape, rules, sequence, head, query), queries, key.token, scores, factors);
          const float* value = values + tile * q_floats;
          if (is_first)
            seen.sum_over_keys<false>(width, scores, value, sum);
          else
            seen.sum_over_keys<true>(width, scores, value, sum);
          is_first = false;
        }
        if (!is_part)
          finish(sequence, head, row, queries, running, sum, width);
        else if (!is_first)
          add_part(sequence, head, row, queries, running, sum, width);
      }
  }

  /// Applies dropout to the probabilities that multiply the values; the softmax's sum includes the dropped
  /// ones.
  void drop(int64_t row, int64_t queries, int64_t first_key, float* p, float* factors) const {
    dropout_tile(rules, row, queries, first_key, factors);
    for (int64_t i = 0; i < queries * kTileTokens; i += kLanes)
      store(p + i, load(p + i, Full{}) * load(factors + i, Full{}), Full{});
  }

  void finish(int64_t sequence, int64_t head, int64_t first, int64_t queries, const Running& running,
              const float* sum, int64_t width) const {
    for (int64_t row = 0; row < queries; ++row) {
      T* to = static_cast<T*>(out) + place_of(sequence, head, first + row);
      const float scale = 1.0f / running.sum[row];
      for_lanes(shape.head_dim, [&](int64_t i, auto lanes) {
        store(to + i, load(sum + row * width + i, lanes) * scale, lanes);
      });
      log_sum_exp_BHT[first_row(sequence, head, first) + row] =
          running.most[row] + __builtin_logf(running.sum[row]);
    }
  }

  /// Returns the index of a query's first element in `out`.
  int64_t place_of(int64_t sequence, int64_t head, int64_t row) const {
    return ((sequence * shape.seq + row) * shape.heads + head) * shape.head_dim;
  }

  /// Adds the result to the sum of other parts in `out`. Queries that see none of these keys are unchanged.
  void add_part(int64_t sequence, int64_t head, int64_t first, int64_t queries, const Running& running,
                const float* sum, int64_t width) const {
    for (int64_t row = 0; row < queries; ++row) {
      if (running.sum[row] == 0.0f) continue;
      float* to = static_cast<float*>(out) + place_of(sequence, head, first + row);
      float& all = log_sum_exp_BHT[first_row(sequence, head, first) + row];
      const float here = running.most[row] + __builtin_logf(running.sum[row]), before = all;
      const float most = __builtin_fmaxf(before, here);
      all = most + __builtin_logf(exp(broadcast(before - most))[0] + exp(broadcast(here - most))[0]);
      const float kept = exp(broadcast(before - all))[0], scale = exp(broadcast(running.most[row] - all))[0];
      for_lanes(shape.head_dim, [&](int64_t i, auto lanes) {
        store(to + i, load(to + i, lanes) * kept + load(sum + row * width + i, lanes) * scale, lanes);
      });
    }
  }

  /// Returns at most `most` queries of a span whose rows begin at `row`, starting at its `first` query.
  Queries queries_of(const TokenSpan& span, int64_t row, int64_t first, int64_t most) const {
    return {row + first, span.first + first, smaller(most, span.count - first)};
  }

  void run() const {
    const int64_t tokens = block_tokens(), early = ceil_div(shape.early.count, tokens);
    const int64_t blocks = early + ceil_div(shape.late.count, tokens);
    for_blocks(shape.batch * shape.kv_heads * blocks,
               shape.batch * shape.heads * shape.seq * KeyTiles(shape).rows(), [&](int64_t number) {
                 // Late queries see most keys; they go first, so that the threads finish together.
                 const int64_t at = blocks - 1 - number / (shape.batch * shape.kv_heads);
                 const int64_t rest = number % (shape.batch * shape.kv_heads);
                 block(rest / shape.kv_heads, rest % shape.kv_heads,
                       at < early ? queries_of(shape.early, 0, at * tokens, tokens)
                                  : queries_of(shape.late, shape.early.count, (at - early) * tokens, tokens));
               });
  }
};

}  // namespace

void attention(AttentionShape given, ScoreRules rules, Dtype dtype, AttentionInputs in, void* out,
               float* log_sum_exp_BHT, Stream) {
  const AttentionShape shape = with_spans(given);
  if (dtype == Dtype::kFp32)
    Forward<float>{given.is_part(), shape, rules, in, out, log_sum_exp_BHT}.run();
  else
    Forward<Bf16>{given.is_part(), shape, rules, in, out, log_sum_exp_BHT}.run();
}

}  // namespace tycho::TYCHO_ISA
