// Raw entry points of the fused ops of one device. The CPU's is built in (one table per instruction set,
// chosen once); libtycho_cuda.so fills the CUDA one when it is loaded. Torch-free, so that CUDA sources
// compile without LibTorch.
#pragma once
#include <cstdint>
#include <type_traits>

#include "trainer/base/activation.h"
#include "trainer/expression/tile_code.h"
#include "trainer/kernels/twins/cached_keys.h"
#include "trainer/kernels/twins/row_extras.h"
#include "trainer/kernels/twins/row_positions.h"

namespace tycho {

enum class Dtype : int { kFp32, kBf16 };
using Stream = void*;  // cudaStream_t; ignored by CPU kernels

/// N rows of D elements.
struct RowsShape {
  int64_t rows = 0, dim = 0;
};

/// `groups` norms of `dim` consecutive elements each within a row: group g of row r starts r * step + g * dim
/// elements from the pointer. Statistics are kept at [r * groups + g]; weights and biases [dim] serve every
/// group.
struct NormShape {
  int64_t rows = 0, groups = 1, dim = 0;
  int64_t x_step = 0;   // elements between rows of x
  int64_t y_step = 0;   // for y and dy
  int64_t dx_step = 0;  // for dx
};

/// Element (r, i) of a matrix is dropped with probability p, by bits that are a function of (key, first_row +
/// r, i) alone: any machine, division into parts or number of threads drops the same elements.
struct DropoutMask {
  double p = 0.0;  // [0, 1)
  uint64_t key = 0;
  int64_t first_row = 0;
};

/// Row r of a batch gets row first_position + r % seq of the table. Without a table nothing is added.
struct PositionRows {
  const void* table = nullptr;
  int64_t seq = 1, first_position = 0;
};

/// Function of the logits before the softmax: z = scale x, then softcap tanh(z / softcap) unless it is 0.
struct LogitRules {
  float scale = 1.0f, softcap = 0.0f;
  int64_t count = 0;  // logits of a row, the first ones; their gradient sets the rest of a row to 0. 0: all

  /// Returns the number of logits of rows of `dim` elements.
  constexpr int64_t count_of(int64_t dim) const { return count == 0 ? dim : count; }
};

/// Rows of a matrix [kTokenStatistics, N] of what a classifier knows of each token's logits x, after
/// LogitRules. The first kLossStatistics are arguments of losses; the rest keeps p = e^(x - max - log_sum)
/// exact where logits are large.
enum TokenStatistic : int {
  kLogSumExp,
  kTargetLogit,
  kMeanLogit,
  kMaxLogit,
  kExpectedLogit,  // sum of p x
  kLossStatistics,
  kLogSum = kLossStatistics,  // log of the sum of e^(x - max)
  kExpectedBelowMax,          // sum of p (x - max)
  kNumLargest,                // logits that equal max
  kTokenStatistics
};

/// Consecutive tokens of a sequence, from position `first` on.
struct TokenSpan {
  int64_t first = 0, count = 0;
};

/// B sequences with T queries and S keys each. Without `keys`, queries are the tokens of a sequence, and so
/// are keys. With it, a sequence has `keys` tokens, and its queries are those of two disjoint spans, one
/// after the other: T is the sum of their counts.
///
/// A shape with early_keys is of a part of the keys: rows of kv hold only those two spans, one after the
/// other. Attention to parts is summed in fp32: forward adds a part to the `out` and log-sum-exp of earlier
/// parts (0 and -infinity before the first), and backward, with the log-sum-exp of all keys, adds to dq and
/// writes dkv, both fp32.
struct AttentionShape {
  int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t keys = 0;
  TokenSpan early, late;
  TokenSpan early_keys, late_keys;

  [[gnu::always_inline]] bool is_part() const { return early_keys.count > 0; }
};

/// Rows of attention's inputs: those of q have H heads, those of kv the K heads of k, then of v. A step is
/// the number of elements between two rows.
struct AttentionInputs {
  const void* q = nullptr;
  int64_t q_step = 0;
  const void* kv = nullptr;
  int64_t kv_step = 0;
};
/// Rows of the gradients of AttentionInputs.
struct AttentionGradients {
  void* dq = nullptr;
  int64_t q_step = 0;
  void* dkv = nullptr;
  int64_t kv_step = 0;
};

/// Gradients of heads as a library returns them: head h of row r is head_dim elements from
/// r * row_step + h * head_step on.
struct HeadRows {
  const void* data = nullptr;
  int64_t row_step = 0, head_step = 0;
};
/// Tables of rope() by which queries and keys were rotated; null for none. Row r has position r % seq.
struct Rotations {
  const float* queries = nullptr;
  const float* keys = nullptr;
  int64_t rotary_dim = 0;
};

/// Rules for scores in addition to q kᵀ, and for the keys that a query sees; it never sees later keys.
struct ScoreRules {
  float scale = 1.0f;
  float softcap = 0.0f;                  // c: scores become c tanh(score / c); 0: no cap
  int64_t window = -1;                   // a query sees this many keys before its own; -1: all
  const float* alibi_H = nullptr;        // slopes: slope x (key position - query position) is added
  const int32_t* document_BT = nullptr;  // [B, S]: tokens see their own document only
  // Over the softmax of all tokens, [B H S, S]: row (b H + h) S + position of the query, element key. Tiles
  // of any size, and any spans, drop the same elements.
  DropoutMask dropout;
  int64_t dropout_heads = 0;  // H of the model, where the shape has some of its heads; 0: the shape's
  bool any_order = false;     // gradients may be added in any order; GPUs only
  bool flash_3 = false;       // FlashAttention-3 computes what it can; GPUs only
};

/// Position of a buffer's elements in the parameter that it is part of, in row-major order. Without rows,
/// consecutive elements from `first` on. Else the part has rows of `row` elements, of which the buffer begins
/// at element `first`; in the parameter rows are `whole_row` apart, and a row is up to kMostRuns runs of
/// consecutive elements, which begin at here[k] in the part's row and at there[k] in the parameter's.
struct ParamRuns {
  static constexpr int kMostRuns = 4;
  int64_t first = 0;
  int64_t row = 0, whole_row = 0;
  int64_t here[kMostRuns] = {0, INT64_MAX, INT64_MAX, INT64_MAX}, there[kMostRuns] = {};
};

/// Weights that an optimizer updates: `params` alone (fp32 or bf16), or fp32 `master` with params its bf16
/// copy. bf16 without a master is rounded to nearest even, or, when stochastic, up with the probability of
/// the fraction that would be cut off: the bits are a function of (key, step, element of the whole
/// parameter).
struct OptimizedWeights {
  Dtype dtype = Dtype::kFp32;
  void* params = nullptr;
  float* master = nullptr;
  bool stochastic = false;
  uint64_t key = 0, step = 0;
  ParamRuns place = {};
};

/// Memory of one array of a program: element (r, i) is data[r * row_step + i * step]. Weights have no data of
/// their own.
struct ProgramMemory {
  void* data = nullptr;
  Dtype dtype = Dtype::kFp32;
  int64_t row_step = 0;
  int step = 1;  // 0: a number serves a whole row
  bool read = false, written = false;
  const OptimizedWeights* weights = nullptr;  // of one row
};

/// result [rows, columns] = left [rows, depth] · right [columns, depth]ᵀ.
struct MatmulShape {
  int64_t rows = 0, columns = 0, depth = 0;
};
/// Element (row, k) is data[row * row_step + k * depth_step]; one of the steps is 1.
struct MatmulOperand {
  const void* data = nullptr;
  Dtype dtype = Dtype::kFp32;
  int64_t row_step = 0, depth_step = 0;
};
/// Contiguous. `added` has the result's shape and dtype, may be the result, and is null if nothing is added.
struct MatmulResult {
  void* data = nullptr;
  Dtype dtype = Dtype::kFp32;
  const void* added = nullptr;
};

// `decay` is the share of a weight that a step removes.
struct AdamWScalars {
  double lr, beta1, beta2, eps, decay;
  double bias_correction1, bias_correction2;  // 1 - beta^step
};
struct LionScalars {
  double lr, beta1, beta2, decay;
};
struct SgdScalars {
  double lr, momentum, weight_decay;
  bool nesterov;
};

/// Numbers of one byte: 4 bits of exponent and 3 of fraction, up to 448, without infinities; or 5 and 2, up
/// to 57344.
enum class Fp8Format : int { kE4m3, kE5m2 };
/// Rule by which bf16 numbers x of a group become codes: code = round(scale x), x = factor code, scale =
/// largest code / largest |x|, down to a power of two if asked for, factor = 1 / scale.
struct Fp8Rule {
  Fp8Format format = Fp8Format::kE4m3;
  bool power_of_two = false;
};

/// Every pointer is to contiguous memory of the table's device. No function synchronises or allocates. The
/// contract of each is in the op's header: kernels/<op>.h.
struct KernelTable {
  const char* name = "";  // "cpu avx2", "cpu avx512_bf16", "cuda"; "cuda emulated" of tests

  /// casts: of bf16 rows of one group, without NormAdds::after.
  void (*rms_norm)(NormShape, Dtype, const void* x, const void* weight, float weight_offset, float eps,
                   void* y, float* inv_rms, NormAdds, CastRows, Stream) = nullptr;
  /// dweight may be null.
  void (*rms_norm_backward)(NormShape, Dtype, const void* x, const void* weight, float weight_offset,
                            const float* inv_rms, const void* dy, void* dx, bool add_to_dx, float* dweight,
                            bool add_to_dweight, float* workspace, Stream) = nullptr;
  /// Number of floats of workspace that rms_norm_backward needs.
  int64_t (*rms_norm_backward_workspace)(NormShape) = nullptr;
  /// bias, dweight and dbias may be null.
  void (*layer_norm)(NormShape, Dtype, const void* x, const void* weight, const void* bias, float eps,
                     void* y, float* mean, float* inv_std, NormAdds, CastRows, Stream) = nullptr;
  void (*layer_norm_backward)(NormShape, Dtype, const void* x, const void* weight, const float* mean,
                              const float* inv_std, const void* dy, void* dx, bool add_to_dx, float* dweight,
                              float* dbias, bool add_to_dweight, float* workspace, Stream) = nullptr;
  /// Number of floats of workspace that layer_norm_backward needs.
  int64_t (*layer_norm_backward_workspace)(NormShape) = nullptr;

  void (*activation)(int64_t n, Dtype, Activation, const void* x, void* y, Stream) = nullptr;
  void (*activation_backward)(int64_t n, Dtype, Activation, const void* x, const void* dy, void* dx, void* y,
                              Stream) = nullptr;
  void (*gated_activation)(RowsShape, Dtype, Activation, const void* gate_up, void* y, Stream) = nullptr;
  void (*gated_activation_backward)(RowsShape, Dtype, Activation, const void* gate_up, const void* dy,
                                    void* dgate_up, void* y, Stream) = nullptr;
  void (*bias_activation)(RowsShape, Dtype, Activation, const void* bias, const void* x, void* y,
                          Stream) = nullptr;
  /// dbias may be null.
  void (*bias_activation_backward)(RowsShape, Dtype, Activation, const void* bias, const void* x,
                                   const void* dy, void* dx, void* y, float* dbias, bool add_to_dbias,
                                   float* workspace, Stream) = nullptr;
  /// Number of floats of workspace that bias_activation_backward needs.
  int64_t (*bias_activation_backward_workspace)(RowsShape) = nullptr;
  /// bf16: gated_activation, bias_activation or, without a bias, activation, with casts of y, which may be
  /// null where its codes are made.
  void (*activation_casts)(RowsShape, Activation, bool gated, const void* bias, const void* x, void* y,
                           CastRows, Stream) = nullptr;
  void (*clamp)(int64_t n, Dtype, float limit, const void* x, void* y, Stream) = nullptr;
  void (*clamp_backward)(int64_t n, Dtype, float limit, const void* x, const void* dy, void* dx,
                         Stream) = nullptr;

  void (*add_bias)(RowsShape, Dtype, const void* bias, const void* x, void* y, Stream) = nullptr;
  void (*bias_gradient)(RowsShape, Dtype, const void* dy, float* dbias, bool add, float* workspace,
                        Stream) = nullptr;
  /// Number of floats of workspace that bias_gradient needs.
  int64_t (*bias_gradient_workspace)(RowsShape) = nullptr;

  /// residual may be null.
  void (*dropout)(RowsShape, Dtype, DropoutMask, const void* x, const void* residual, void* y,
                  Stream) = nullptr;

  void (*rope)(RopeShape, Dtype, const float* cos_sin, bool inverse, void* qkv, Stream) = nullptr;
  /// Takes gradients of whole sequences.
  void (*pack_gradients)(AttentionShape, Dtype, HeadRows dq, HeadRows dk, HeadRows dv, Rotations,
                         AttentionGradients, Stream) = nullptr;

  /// row_step: elements between rows of x.
  void (*temperature)(RowsShape, int64_t row_step, Dtype, TemperatureRule, RowPositions, void* x,
                      Stream) = nullptr;

  void (*embedding)(RowsShape, Dtype, const int32_t* tokens, const void* table, PositionRows, void* y,
                    Stream) = nullptr;
  void (*embedding_backward)(RowsShape, Dtype, const int32_t* tokens, int64_t vocab, const void* dy,
                             float* dtable, void* workspace, Stream) = nullptr;
  /// Number of bytes of workspace that embedding_backward needs.
  int64_t (*embedding_backward_workspace)(RowsShape, int64_t vocab) = nullptr;
  void (*position_gradient)(RowsShape, Dtype, int64_t seq, const void* dy, float* dtable, bool add,
                            Stream) = nullptr;

  void (*cross_entropy)(RowsShape, Dtype, LogitRules, void* logits, const int32_t* targets,
                        const float* weight, bool write_gradient, float* loss, Stream) = nullptr;
  void (*token_statistics)(RowsShape, Dtype, LogitRules, const void* logits, const int32_t* targets,
                           float* statistics, Stream) = nullptr;
  void (*token_statistics_backward)(RowsShape, Dtype, LogitRules, int64_t vocab, void* logits,
                                    const int32_t* targets, const float* statistics, const float* gradients,
                                    const float* weight, Stream) = nullptr;

  void (*adamw_step)(int64_t n, AdamWScalars, const float* grad_scale, OptimizedWeights, const float* grads,
                     float* m, float* v, Stream) = nullptr;
  void (*lion_step)(int64_t n, LionScalars, const float* grad_scale, OptimizedWeights, const float* grads,
                    float* m, Stream) = nullptr;
  void (*sgd_step)(int64_t n, SgdScalars, const float* grad_scale, OptimizedWeights, const float* grads,
                   float* momentum, Stream) = nullptr;
  void (*muon_momentum)(int64_t n, double momentum, bool nesterov, const float* grad_scale,
                        const float* grads, float* buffer, Dtype, void* update, Stream) = nullptr;
  void (*add_update)(int64_t n, double step_size, double decay, OptimizedWeights, Dtype, const void* update,
                     Stream) = nullptr;
  /// sum += sum of squares of n floats, accumulated in double in a fixed order, so that it is repeatable.
  void (*sum_of_squares)(int64_t n, const float* x, double* sum, Stream) = nullptr;
  void (*cast)(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream) = nullptr;
  /// y (fp32) += x
  void (*add_to_fp32)(int64_t n, Dtype, const void* x, float* y, Stream) = nullptr;
  // Rows of bf16 x may be apart: row_step elements. codes are contiguous.
  /// amax_R: largest |x| of each row; NaN wins.
  void (*fp8_row_amax)(RowsShape, int64_t row_step, const void* x, float* amax_R, Stream) = nullptr;
  /// amax_R gives the scale of each row; null: it is that of the row itself.
  void (*fp8_rows)(RowsShape, int64_t row_step, Fp8Rule, const void* x, const float* amax_R, uint8_t* codes,
                   float* factors_R, Stream) = nullptr;
  /// amax: largest |x| of each column, or with `whole` of all elements in every place; NaN wins.
  void (*fp8_amax)(RowsShape, int64_t row_step, bool whole, const void* x, float* amax_C, float* workspace,
                   Stream) = nullptr;
  /// Number of floats of workspace that fp8_amax needs.
  int64_t (*fp8_amax_workspace)(RowsShape) = nullptr;
  /// Row r of the codes is row r of x, and every row's scale is that of amax[0]; `transposed`: is column r of
  /// x, and its scale is that of amax[r].
  void (*fp8_cast)(RowsShape, int64_t row_step, Fp8Rule, bool transposed, const void* x, const float* amax,
                   uint8_t* codes, float* factors, Stream) = nullptr;
  /// Transposes codes [rows, dim] of one factor, which is written dim times.
  void (*fp8_turn)(RowsShape, const uint8_t* codes, const float* factor, uint8_t* turned, float* factors,
                   Stream) = nullptr;
  void (*run_program)(RowsShape, const TileProgram&, const ProgramMemory* arrays, Stream) = nullptr;

  /// Sums in fp32, rounds once.
  void (*matmul)(MatmulShape, MatmulOperand left, MatmulOperand right, MatmulResult, Stream) = nullptr;
  void (*attention)(AttentionShape, ScoreRules, Dtype, AttentionInputs, void* out, float* log_sum_exp_BHT,
                    Stream) = nullptr;
  void (*attention_backward)(AttentionShape, ScoreRules, Dtype, AttentionInputs, const void* out,
                             const float* log_sum_exp_BHT, const void* dout, AttentionGradients,
                             Stream) = nullptr;

  /// out [B, H*d] = attention of the last token of each sequence, q [B, H*d], to the keys of a cache.
  void (*attention_cached)(AttentionShape, ScoreRules, Dtype, const void* q, CachedKeys, void* out,
                           Stream) = nullptr;

  /// out [4 groups] = the numbers of counters first_counter, first_counter + 1, ... to the bit
  /// (base/random/normal_numbers.h). Runs on the calling thread only.
  void (*normal_numbers)(int64_t groups, uint64_t key, uint64_t first_counter, double std,
                         float* out) = nullptr;
};

/// Names of the entries, each once. Declarations, tables and checks are made from these lists.
// clang-format off
#define TYCHO_KERNELS(X) \
  X(rms_norm) X(rms_norm_backward) X(rms_norm_backward_workspace) X(layer_norm) X(layer_norm_backward) \
  X(layer_norm_backward_workspace) X(activation) X(activation_backward) X(gated_activation) \
  X(gated_activation_backward) X(bias_activation) X(bias_activation_backward) \
  X(bias_activation_backward_workspace) X(activation_casts) X(clamp) X(clamp_backward) X(add_bias) X(bias_gradient) \
  X(bias_gradient_workspace) X(dropout) X(rope) X(pack_gradients) X(temperature) X(embedding) \
  X(embedding_backward) X(embedding_backward_workspace) X(position_gradient) X(cross_entropy) X(token_statistics) \
  X(token_statistics_backward) X(adamw_step) X(lion_step) X(sgd_step) X(muon_momentum) X(add_update) \
  X(sum_of_squares) X(cast) X(add_to_fp32) X(fp8_row_amax) X(fp8_rows) X(fp8_amax) X(fp8_amax_workspace) \
  X(fp8_cast) X(fp8_turn) X(run_program)
// clang-format on
/// Entries of the CPU only: a GPU's products and attention are ATen's, and its initial weights come from the
/// CPU.
#define TYCHO_CPU_ONLY_KERNELS(X) \
  X(matmul) X(attention) X(attention_backward) X(attention_cached) X(normal_numbers)

/// Declares the kernel of that entry in the surrounding namespace.
#define TYCHO_DECLARE_KERNEL(name) std::remove_pointer_t<decltype(KernelTable::name)> name;
/// Initialises the entry with the kernel of its name.
#define TYCHO_TABLE_ENTRY(entry) .entry = &entry,

/// Returns the CPU's table: the best that the CPU has, or the one that
/// TYCHO_CPU=generic|avx2|avx512|avx512_bf16|amx_bf16 names. Throws Error (kUsage) when TYCHO_CPU names one
/// that this machine cannot run.
const KernelTable& cpu_kernels();
/// Sets the CUDA table. Passed to the CUDA plug-in's tycho_cuda_init, which calls it. Throws Error when an
/// entry is missing.
void set_cuda_kernels(const KernelTable* table);
/// Returns the CUDA table. Throws Error "[kernels] no CUDA plug-in: ..." when there is none.
const KernelTable& cuda_kernels();

}  // namespace tycho
