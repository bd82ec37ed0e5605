// Attention on the CPU, backward: scores are recomputed tile by tile from the log-sum-exp that forward kept.
#include "trainer/kernels/cpu/attention/attention_tiles.h"
#include "trainer/kernels/cpu/kernels.h"

namespace tycho::TYCHO_ISA {
namespace {

/// A thread's memory for one key head of one sequence; offsets in floats.
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
  AttentionShape shape;
  ScoreRules rules;
  AttentionInputs in;
  const T* out;
  const float* log_sum_exp_BHT;
  const T* dout;
  AttentionGradients gradients;

  void lay_out_keys(const HeadRows<T>& rows, const Workspace& work, int64_t width) const {
    const int64_t d = shape.head_dim;
    for (int64_t first = 0; first < shape.keys; first += kTileTokens) {
      const int64_t keys = smaller(kTileTokens, shape.keys - first);
      transpose_tile<kTileTokens>(rows.value(first), rows.kv_step, keys, d, work.values_T + first * d);
      float* key_tile = work.keys + first * width;
      copy_tile(rows.key(first), rows.kv_step, keys, d, 1.0f, key_tile, width);
      transpose_tile<kTileTokens>(key_tile, width, keys, d, work.keys_T + first * d);
      for (int64_t i = first * width; i < (first + keys) * width; i += kLanes) {
        store(work.dkeys + i, Vec{}, Full{});
        store(work.dvalues + i, Vec{}, Full{});
      }
    }
  }

  /// dp becomes the gradient of the tile's products, softmax (kept dp - dot), and p what reached the values:
  /// kept softmax, with kept the factors of dropout.
  void score_gradients(const Workspace& work, int64_t queries, const float* log_sum_exp,
                       const float* dot) const {
    for (int64_t row = 0; row < queries; ++row)
      for (int64_t i = row * kTileTokens; i < (row + 1) * kTileTokens; i += kLanes) {
        const Vec p = exp(load(work.p + i, Full{}) - log_sum_exp[row]);
        const Vec kept = rules.dropout.p > 0 ? load(work.kept + i, Full{}) : broadcast(1.0f);
        Vec gradient = p * (kept * load(work.dp + i, Full{}) - dot[row]);
        if (rules.softcap != 0.0f) gradient *= load(work.cap_slope + i, Full{});
        store(work.p + i, kept * p, Full{});
        store(work.dp + i, gradient, Full{});
      }
  }

  /// dot[row] = out · dout of a query: the sum over keys of kept p dp.
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
    const KeyTiles seen = visible_tiles(rules, query, queries);
    for (int64_t first = seen.first * kTileTokens; first < seen.last * kTileTokens; first += kTileTokens) {
      const int64_t keys = smaller(kTileTokens, shape.keys - first);
      if (!share_documents(document_T, query, queries, first, keys)) continue;
      scores_of(rules, head, d, document_T, work.q, width, query, queries, work.keys_T + first * d, first,
                keys, work.p, work.cap_slope);
      tile_product<false>(queries, kTileTokens, d, {work.dout, width, 1}, work.values_T + first * d,
                          kTileTokens, work.dp, kTileTokens);
      if (rules.dropout.p > 0)
        dropout_tile(rules, mask_row(shape, rules, sequence, head, query), queries, first, work.kept);
      score_gradients(work, queries, log_sum_exp_BHT + first_row, dot);
      tile_product<true>(keys, width, queries, {work.p, 1, kTileTokens}, work.dout, width,
                         work.dvalues + first * width, width);
      tile_product<true>(keys, width, queries, {work.dp, 1, kTileTokens}, work.q, width,
                         work.dkeys + first * width, width);
      tile_product<true>(queries, width, keys, {work.dp, kTileTokens, 1}, work.keys + first * width, width,
                         work.dq, width);
    }
    T* dq = static_cast<T*>(gradients.dq) + (sequence * shape.seq + tile.row) * gradients.q_step;
    write(work.dq, width, rules.scale, queries, dq + head * d, gradients.q_step);
  }

  /// Rows of one head, which are `step` elements apart.
  void write(const float* x, int64_t width, float factor, int64_t count, T* first, int64_t step) const {
    for (int64_t row = 0; row < count; ++row) {
      T* to = first + row * step;
      for_lanes(shape.head_dim, [&](int64_t i, auto lanes) {
        store(to + i, load(x + row * width + i, lanes) * factor, lanes);
      });
    }
  }

  /// One key head of one sequence: no other block writes its gradients.
  void block(int64_t sequence, int64_t kv_head) const {
    const HeadRows<T> rows(shape, in, sequence, kv_head);
    const int64_t d = shape.head_dim, width = tile_width(d), group = shape.heads / shape.kv_heads;
    const Workspace work(ceil_div(shape.keys, kTileTokens), d, width);
    lay_out_keys(rows, work, width);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const TokenStretch stretches[] = {shape.early, shape.late};
      int64_t row = 0;
      for (const TokenStretch& stretch : stretches)
        for (int64_t done = 0; done < stretch.count; done += kTileTokens) {
          const int64_t queries = smaller(kTileTokens, stretch.count - done);
          query_tile(rows, work, sequence, head, {row, stretch.first + done, queries}, width);
          row += queries;
        }
    }
    const int64_t step = gradients.kv_step;
    T* dkeys = static_cast<T*>(gradients.dkv) + sequence * shape.keys * step + kv_head * d;
    write(work.dkeys, width, 1.0f, shape.keys, dkeys, step);
    write(work.dvalues, width, 1.0f, shape.keys, dkeys + shape.kv_heads * d, step);
  }

  void run() const {
    for_blocks(shape.batch * shape.kv_heads, shape.batch * shape.heads * shape.seq * shape.keys,
               [&](int64_t number) { block(number / shape.kv_heads, number % shape.kv_heads); });
  }
};

}  // namespace

void attention_backward(AttentionShape given, ScoreRules rules, Dtype dtype, AttentionInputs in,
                        const void* out, const float* log_sum_exp_BHT, const void* dout,
                        AttentionGradients gradients, Stream) {
  const AttentionShape shape = with_stretches(given);
  if (dtype == Dtype::kFp32)
    Backward<float>{
        shape,    rules, in, static_cast<const float*>(out), log_sum_exp_BHT, static_cast<const float*>(dout),
        gradients}
        .run();
  else
    Backward<Bf16>{
        shape,    rules, in, static_cast<const Bf16*>(out), log_sum_exp_BHT, static_cast<const Bf16*>(dout),
        gradients}
        .run();
}

}  // namespace tycho::TYCHO_ISA
