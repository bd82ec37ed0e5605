// Attention on the CPU, backward: scores are recomputed tile by tile from the log-sum-exp that forward kept.
#include "trainer/kernels/cpu/attention/attention_tiles.h"
#include "trainer/kernels/cpu/kernels.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Memory of a thread for one key head of one sequence; offsets in floats.
struct Workspace {
  float *keys, *keys_T, *values_T, *dkeys, *dvalues;  // per key tile
  float *q, *dout, *dq;                               // one query tile
  float *p, *dp, *cap_slope, *kept;                   // one score tile

  Workspace(int64_t tiles, int64_t d, int64_t width) {
    const int64_t rows = kTileTokens * width, columns = kTileTokens * d, square = kTileTokens * kTileTokens;
    auto* next = static_cast<float*>(
        thread_memory((tiles * (3 * rows + 2 * columns) + 3 * rows + 4 * square) * int64_t{sizeof(float)}));
    const auto take = [&](int64_t floats) {
      float* taken = next;
      next += floats;
      return taken;
    };
    keys = take(tiles * rows), keys_T = take(tiles * columns), values_T = take(tiles * columns);
    dkeys = take(tiles * rows), dvalues = take(tiles * rows);
    q = take(rows), dout = take(rows), dq = take(rows);
    p = take(square), dp = take(square), cap_slope = take(square), kept = take(square);
  }
};

template <class T>
struct Backward {
  bool is_part;  // gradients are fp32
  AttentionShape shape;
  ScoreRules rules;
  AttentionInputs in;
  const T* out;
  const float* log_sum_exp_BHT;
  const T* dout;
  AttentionGradients gradients;

  void lay_out_keys(const HeadRows<T>& rows, const Workspace& work, int64_t width) const {
    const int64_t d = shape.head_dim;
    const KeyTiles tiles(shape);
    for (int64_t tile = 0; tile < tiles.count(); ++tile) {
      const KeyTile key = tiles.at(tile);
      const int64_t first = tile * kTileTokens;
      transpose_tile<kTileTokens>(rows.value(key.row), rows.kv_step, key.count, d, work.values_T + first * d);
      float* key_tile = work.keys + first * width;
      copy_tile(rows.key(key.row), rows.kv_step, key.count, d, 1.0f, key_tile, width);
      transpose_tile<kTileTokens>(key_tile, width, key.count, d, work.keys_T + first * d);
      for (int64_t i = first * width; i < (first + key.count) * width; i += kLanes) {
        store(work.dkeys + i, Vec{}, Full{});
        store(work.dvalues + i, Vec{}, Full{});
      }
    }
  }

  /// Overwrites dp with the gradient of the tile's products, softmax (kept dp - dot), and p with the
  /// probabilities that multiplied the values: kept softmax, where kept are the factors of dropout.
  void score_gradients(const Workspace& work, const Triangle& seen, int64_t queries, const float* log_sum_exp,
                       const float* dot) const {
    for (int64_t row = 0; row < queries; ++row) {
      const int64_t end = (row + 1) * kTileTokens, end_seen = row * kTileTokens + seen.seen_keys(row + 1);
      int64_t i = row * kTileTokens;
      for (; i < end_seen; i += kLanes) {
        const Vec p = exp(load(work.p + i, Full{}) - log_sum_exp[row]);
        const Vec kept = rules.dropout.p > 0 ? load(work.kept + i, Full{}) : broadcast(1.0f);
        Vec gradient = p * (kept * load(work.dp + i, Full{}) - dot[row]);
        if (rules.softcap != 0.0f) gradient *= load(work.cap_slope + i, Full{});
        store(work.p + i, kept * p, Full{});
        store(work.dp + i, gradient, Full{});
      }
      for (; i < end; i += kLanes) {
        store(work.p + i, Vec{}, Full{});
        store(work.dp + i, Vec{}, Full{});
      }
    }
  }

  /// Computes dot[row] = out · dout of a query: the sum over keys of kept p dp.
  void rows_of_queries(const HeadRows<T>& rows, const Workspace& work, int64_t sequence, int64_t head,
                       int64_t first, int64_t queries, int64_t width, float* dot) const {
    const int64_t d = shape.head_dim, step = shape.heads * d;
    const int64_t offset = (sequence * shape.seq + first) * step + head * d;
    copy_tile(rows.query(first, head), rows.q_step, queries, d, rules.scale, work.q, width);
    copy_tile(dout + offset, step, queries, d, 1.0f, work.dout, width);
    for (int64_t row = 0; row < queries; ++row) {
      Vec sum{};
      for_lanes(d, [&](int64_t i, auto lanes) {
        sum += load(out + offset + row * step + i, lanes) * load(work.dout + row * width + i, lanes);
      });
      dot[row] = sum_lanes(sum);
      for (int64_t i = 0; i < width; i += kLanes) store(work.dq + row * width + i, Vec{}, Full{});
    }
  }

  void query_tile(const HeadRows<T>& rows, const Workspace& work, int64_t sequence, int64_t head,
                  Queries tile, int64_t width) const {
    const int64_t d = shape.head_dim, queries = tile.count, query = tile.position;
    const int32_t* document_T = rules.document_BT ? rules.document_BT + sequence * shape.keys : nullptr;
    const int64_t first_row = (sequence * shape.heads + head) * shape.seq + tile.row;
    float dot[kTileTokens];
    rows_of_queries(rows, work, sequence, head, tile.row, queries, width, dot);
    const KeyTiles tiles(shape);
    for (int64_t number = 0; number < tiles.count(); ++number) {
      const KeyTile key = tiles.at(number);
      if (!is_visible(rules, query, queries, key)) continue;
      if (!share_documents(document_T, query, queries, key.token, key.count)) continue;
      const int64_t first = number * kTileTokens, keys = key.count;
      scores_of(rules, head, d, document_T, work.q, width, query, queries, work.keys_T + first * d, key.token,
                keys, work.p, work.cap_slope);
      const Triangle seen(query, queries, key.token, keys);
      seen.scores(d, {work.dout, width, 1}, work.values_T + first * d, work.dp);
      if (rules.dropout.p > 0)
        dropout_tile(rules, mask_row(shape, rules, sequence, head, query), queries, key.token, work.kept);
      score_gradients(work, seen, queries, log_sum_exp_BHT + first_row, dot);
      seen.sum_over_queries(width, work.p, work.dout, work.dvalues + first * width);
      seen.sum_over_queries(width, work.dp, work.q, work.dkeys + first * width);
      seen.sum_over_keys<true>(width, work.dp, work.keys + first * width, work.dq);
    }
    const int64_t place = (sequence * shape.seq + tile.row) * gradients.q_step + head * d;
    if (is_part)
      write<true>(work.dq, width, rules.scale, queries, static_cast<float*>(gradients.dq) + place,
                  gradients.q_step);
    else
      write<false>(work.dq, width, rules.scale, queries, static_cast<T*>(gradients.dq) + place,
                   gradients.q_step);
  }

  /// Writes rows of one head, which are `step` elements apart.
  template <bool Add, class To>
  void write(const float* x, int64_t width, float factor, int64_t count, To* first, int64_t step) const {
    for (int64_t row = 0; row < count; ++row) {
      To* to = first + row * step;
      for_lanes(shape.head_dim, [&](int64_t i, auto lanes) {
        const Vec value = load(x + row * width + i, lanes) * factor;
        if constexpr (Add)
          store(to + i, load(to + i, lanes) + value, lanes);
        else
          store(to + i, value, lanes);
      });
    }
  }

  /// Computes one key head of one sequence: no other block writes its gradients.
  void block(int64_t sequence, int64_t kv_head) const {
    const HeadRows<T> rows(shape, in, sequence, kv_head);
    const int64_t d = shape.head_dim, width = tile_width(d), group = shape.heads / shape.kv_heads;
    const Workspace work(KeyTiles(shape).count(), d, width);
    lay_out_keys(rows, work, width);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const TokenSpan spans[] = {shape.early, shape.late};
      int64_t row = 0;
      for (const TokenSpan& span : spans)
        for (int64_t done = 0; done < span.count; done += kTileTokens) {
          const int64_t queries = smaller(kTileTokens, span.count - done);
          query_tile(rows, work, sequence, head, {row, span.first + done, queries}, width);
          row += queries;
        }
    }
    if (is_part)
      write_keys<float>(work, width, sequence, kv_head);
    else
      write_keys<T>(work, width, sequence, kv_head);
  }

  template <class To>
  void write_keys(const Workspace& work, int64_t width, int64_t sequence, int64_t kv_head) const {
    const KeyTiles tiles(shape);
    const int64_t d = shape.head_dim, step = gradients.kv_step;
    To* dkeys = static_cast<To*>(gradients.dkv) + sequence * tiles.rows() * step + kv_head * d;
    for (int64_t tile = 0; tile < tiles.count(); ++tile) {
      const KeyTile key = tiles.at(tile);
      const int64_t place = tile * kTileTokens * width;
      To* to = dkeys + key.row * step;
      write<false>(work.dkeys + place, width, 1.0f, key.count, to, step);
      write<false>(work.dvalues + place, width, 1.0f, key.count, to + shape.kv_heads * d, step);
    }
  }

  void run() const {
    for_blocks(shape.batch * shape.kv_heads, shape.batch * shape.heads * shape.seq * KeyTiles(shape).rows(),
               [&](int64_t number) { block(number / shape.kv_heads, number % shape.kv_heads); });
  }
};

}  // namespace

void attention_backward(AttentionShape given, ScoreRules rules, Dtype dtype, AttentionInputs in,
                        const void* out, const float* log_sum_exp_BHT, const void* dout,
                        AttentionGradients gradients, Stream) {
  const AttentionShape shape = with_spans(given);
  if (dtype == Dtype::kFp32)
    Backward<float>{given.is_part(),
                    shape,
                    rules,
                    in,
                    static_cast<const float*>(out),
                    log_sum_exp_BHT,
                    static_cast<const float*>(dout),
                    gradients}
        .run();
  else
    Backward<Bf16>{given.is_part(),
                   shape,
                   rules,
                   in,
                   static_cast<const Bf16*>(out),
                   log_sum_exp_BHT,
                   static_cast<const Bf16*>(dout),
                   gradients}
        .run();
}

}  // namespace tycho::TYCHO_ISA
