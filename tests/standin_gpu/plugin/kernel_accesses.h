// Lists the memory that each kernel of the table reads and writes: a function of the same name and
// arguments. An argument that is updated in place is read and written. Null pointers stand for nothing.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/standin_gpu/plugin/access.h"
#include "trainer/base/activation.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace standin::accesses_of {

using tycho::Activation, tycho::AdamWScalars, tycho::AttentionGradients, tycho::AttentionShape;
using tycho::DropoutMask, tycho::Dtype, tycho::Fp8Rule, tycho::HeadRows, tycho::LionScalars;
using tycho::LogitRules, tycho::NormShape, tycho::OptimizedWeights, tycho::PositionRows, tycho::RopeShape;
using tycho::ProgramMemory, tycho::Rotations, tycho::RowPositions, tycho::RowsShape, tycho::SgdScalars,
    tycho::Stream;
using tycho::TemperatureRule, tycho::TileProgram;

inline int64_t width(Dtype dtype) { return dtype == Dtype::kFp32 ? 4 : 2; }
inline Access in_rows(const void* x, int64_t rows, int64_t row_bytes, int64_t step_bytes) {
  return {x, rows, row_bytes, step_bytes};
}
inline Access in(const void* x, int64_t bytes) { return {x, 1, bytes, bytes}; }
inline Access out(const void* x, int64_t bytes) { return {x, 1, bytes, bytes, /*written=*/true}; }
/// Memory for a kernel's own partial results, which is not counted among its bytes.
inline Access scratch(const void* x, int64_t bytes) { return {x, 1, bytes, bytes, /*written=*/true, 0}; }
inline Access written(Access access) { return access.written = true, access; }

/// Adds an access that reads and writes; only writes unless `reads`.
inline void update(Accesses& all, const Access& access, bool reads = true) {
  if (reads) all.push_back(access);
  all.push_back(written(access));
}

inline Accesses rms_norm(NormShape s, Dtype t, const void* x, const void* weight, float, float, void* y,
                         float* inv_rms, Stream) {
  const int64_t row = s.groups * s.dim * width(t);
  return {in_rows(x, s.rows, row, s.x_step * width(t)), in(weight, s.dim * width(t)),
          written(in_rows(y, s.rows, row, s.y_step * width(t))), out(inv_rms, s.rows * s.groups * 4)};
}
inline Accesses norm_backward(NormShape s, Dtype t, const void* x, const void* weight, const void* dy,
                              void* dx, bool add_to_dx) {
  const int64_t row = s.groups * s.dim * width(t);
  Accesses all = {in_rows(x, s.rows, row, s.x_step * width(t)), in(weight, s.dim * width(t)),
                  in_rows(dy, s.rows, row, s.y_step * width(t))};
  update(all, in_rows(dx, s.rows, row, s.dx_step * width(t)), add_to_dx);
  return all;
}
inline Accesses rms_norm_backward(NormShape s, Dtype t, const void* x, const void* weight, float,
                                  const float* inv_rms, const void* dy, void* dx, bool add_to_dx,
                                  float* dweight, bool add_to_dweight, float* workspace, Stream) {
  Accesses all = norm_backward(s, t, x, weight, dy, dx, add_to_dx);
  all.push_back(in(inv_rms, s.rows * s.groups * 4));
  all.push_back(scratch(workspace, tycho::cpu_kernels().rms_norm_backward_workspace(s) * 4));
  update(all, in(dweight, s.dim * 4), add_to_dweight);
  return all;
}
inline Accesses layer_norm(NormShape s, Dtype t, const void* x, const void* weight, const void* bias, float,
                           void* y, float* mean, float* inv_std, Stream stream) {
  Accesses all = rms_norm(s, t, x, weight, 0, 0, y, mean, stream);
  all.push_back(in(bias, s.dim * width(t)));
  all.push_back(out(inv_std, s.rows * s.groups * 4));
  return all;
}
inline Accesses layer_norm_backward(NormShape s, Dtype t, const void* x, const void* weight,
                                    const float* mean, const float* inv_std, const void* dy, void* dx,
                                    bool add_to_dx, float* dweight, float* dbias, bool add_to_dweight,
                                    float* workspace, Stream) {
  Accesses all = norm_backward(s, t, x, weight, dy, dx, add_to_dx);
  all.push_back(scratch(workspace, tycho::cpu_kernels().layer_norm_backward_workspace(s) * 4));
  for (const float* statistic : {mean, inv_std}) all.push_back(in(statistic, s.rows * s.groups * 4));
  for (float* gradient : {dweight, dbias}) update(all, in(gradient, s.dim * 4), add_to_dweight);
  return all;
}

inline Accesses activation(int64_t n, Dtype t, Activation, const void* x, void* y, Stream) {
  return {in(x, n * width(t)), out(y, n * width(t))};
}
inline Accesses activation_backward(int64_t n, Dtype t, Activation, const void* x, const void* dy, void* dx,
                                    void* y, Stream) {
  return {in(x, n * width(t)), in(dy, n * width(t)), out(dx, n * width(t)), out(y, n * width(t))};
}
inline Accesses gated_activation(RowsShape s, Dtype t, Activation, const void* gate_up, void* y, Stream) {
  const int64_t half = s.rows * s.dim * width(t);
  return {in(gate_up, 2 * half), out(y, half)};
}
inline Accesses gated_activation_backward(RowsShape s, Dtype t, Activation, const void* gate_up,
                                          const void* dy, void* dgate_up, void* y, Stream) {
  const int64_t half = s.rows * s.dim * width(t);
  return {in(gate_up, 2 * half), in(dy, half), out(dgate_up, 2 * half), out(y, half)};
}
inline Accesses add_bias(RowsShape s, Dtype t, const void* bias, const void* x, void* y, Stream) {
  const int64_t all = s.rows * s.dim * width(t);
  return {in(bias, s.dim * width(t)), in(x, all), out(y, all)};
}
inline Accesses bias_activation(RowsShape s, Dtype t, Activation, const void* bias, const void* x, void* y,
                                Stream stream) {
  return add_bias(s, t, bias, x, y, stream);
}
inline Accesses bias_activation_backward(RowsShape s, Dtype t, Activation, const void* bias, const void* x,
                                         const void* dy, void* dx, void* y, float* dbias, bool add_to_dbias,
                                         float* workspace, Stream) {
  const int64_t bytes = s.rows * s.dim * width(t);
  Accesses all = {in(bias, s.dim * width(t)), in(x, bytes), in(dy, bytes), out(dx, bytes), out(y, bytes)};
  if (dbias != nullptr)
    all.push_back(scratch(workspace, tycho::cpu_kernels().bias_activation_backward_workspace(s) * 4));
  update(all, in(dbias, s.dim * 4), add_to_dbias);
  return all;
}
inline Accesses bias_gradient(RowsShape s, Dtype t, const void* dy, float* dbias, bool add, float* workspace,
                              Stream) {
  Accesses all = {in(dy, s.rows * s.dim * width(t)),
                  scratch(workspace, tycho::cpu_kernels().bias_gradient_workspace(s) * 4)};
  update(all, in(dbias, s.dim * 4), add);
  return all;
}
inline Accesses clamp(int64_t n, Dtype t, float, const void* x, void* y, Stream) {
  return {in(x, n * width(t)), out(y, n * width(t))};
}
inline Accesses clamp_backward(int64_t n, Dtype t, float, const void* x, const void* dy, void* dx, Stream) {
  return {in(x, n * width(t)), in(dy, n * width(t)), out(dx, n * width(t))};
}
inline Accesses dropout(RowsShape s, Dtype t, DropoutMask, const void* x, const void* residual, void* y,
                        Stream) {
  const int64_t bytes = s.rows * s.dim * width(t);
  return {in(x, bytes), in(residual, bytes), out(y, bytes)};
}

inline Accesses rope(RopeShape s, Dtype t, const float* cos_sin, bool, void* qkv, Stream) {
  Accesses all = {in(cos_sin + s.first_position * s.rotary_dim, std::min(s.seq, s.rows) * s.rotary_dim * 4)};
  Access heads = in_rows(qkv, s.rows, s.rotated_heads * s.head_dim * width(t), s.row_width * width(t));
  heads.times = static_cast<double>(s.rotary_dim) / static_cast<double>(s.head_dim);
  update(all, heads);
  return all;
}
inline Access head_access(const AttentionShape& s, Dtype t, const HeadRows& x, int64_t heads) {
  return in_rows(x.data, s.batch * s.seq, ((heads - 1) * x.head_step + s.head_dim) * width(t),
                 x.row_step * width(t));
}
inline Accesses pack_gradients(AttentionShape s, Dtype t, HeadRows dq, HeadRows dk, HeadRows dv, Rotations,
                               AttentionGradients to, Stream) {
  const int64_t rows = s.batch * s.seq, head = s.head_dim * width(t);
  return {head_access(s, t, dq, s.heads), head_access(s, t, dk, s.kv_heads),
          head_access(s, t, dv, s.kv_heads),
          written(in_rows(to.dq, rows, s.heads * head, to.q_step * width(t))),
          written(in_rows(to.dkv, rows, 2 * s.kv_heads * head, to.kv_step * width(t)))};
}
inline Accesses temperature(RowsShape s, int64_t row_step, Dtype t, TemperatureRule, RowPositions positions,
                            void* x, Stream) {
  Accesses all = {in(positions.position_N, s.rows * 4)};
  update(all, in_rows(x, s.rows, s.dim * width(t), row_step * width(t)));
  return all;
}

/// Which rows of the table are read, the device alone knows: the first one stands for them.
inline Accesses embedding(RowsShape s, Dtype t, const int32_t* tokens, const void* table, PositionRows p,
                          void* y, Stream) {
  const int64_t row = s.dim * width(t);
  const auto* positions = static_cast<const char*>(p.table);
  Access looked_up = in(table, row);
  looked_up.times = static_cast<double>(s.rows);
  return {
      in(tokens, s.rows * 4), looked_up,
      in(positions == nullptr ? nullptr : positions + p.first_position * row, std::min(p.seq, s.rows) * row),
      out(y, s.rows * row)};
}
inline Accesses embedding_backward(RowsShape s, Dtype t, const int32_t* tokens, int64_t vocab, const void* dy,
                                   float* dtable, void* workspace, Stream) {
  Accesses all = {in(tokens, s.rows * 4), in(dy, s.rows * s.dim * width(t)),
                  scratch(workspace, tycho::cpu_kernels().embedding_backward_workspace(s, vocab))};
  Access table = in_rows(dtable, vocab, s.dim * 4, s.dim * 4);
  table.times = std::min(1.0, static_cast<double>(s.rows) / static_cast<double>(vocab));
  update(all, table);
  return all;
}
inline Accesses position_gradient(RowsShape s, Dtype t, int64_t seq, const void* dy, float* dtable, bool add,
                                  Stream) {
  Accesses all = {in(dy, s.rows * s.dim * width(t))};
  update(all, in(dtable, seq * s.dim * 4), add);
  return all;
}

inline Accesses cross_entropy(RowsShape s, Dtype t, LogitRules, void* logits, const int32_t* targets,
                              const float* weight, bool write_gradient, float* loss, Stream) {
  const int64_t bytes = s.rows * s.dim * width(t);
  Accesses all = {in(logits, bytes), in(targets, s.rows * 4), in(weight, 4), out(loss, s.rows * 4)};
  if (write_gradient) all.push_back(out(logits, bytes));
  return all;
}
inline Accesses token_statistics(RowsShape s, Dtype t, LogitRules, const void* logits, const int32_t* targets,
                                 float* statistics, Stream) {
  return {in(logits, s.rows * s.dim * width(t)), in(targets, s.rows * 4),
          out(statistics, s.rows * tycho::kTokenStatistics * 4)};
}
inline Accesses token_statistics_backward(RowsShape s, Dtype t, LogitRules, int64_t, void* logits,
                                          const int32_t* targets, const float* statistics,
                                          const float* gradients, const float* weight, Stream) {
  Accesses all = {in(targets, s.rows * 4), in(statistics, s.rows * tycho::kTokenStatistics * 4),
                  in(gradients, s.rows * tycho::kLossStatistics * 4), in(weight, 4)};
  update(all, in(logits, s.rows * s.dim * width(t)));
  return all;
}

inline void update_weights(Accesses& all, int64_t n, const OptimizedWeights& w) {
  if (w.master != nullptr) update(all, in(w.master, n * 4));
  update(all, in(w.params, n * width(w.dtype)), w.master == nullptr);
}
inline Accesses optimizer_step(int64_t n, const float* grad_scale, const OptimizedWeights& w,
                               const float* grads) {
  Accesses all = {in(grad_scale, 4), in(grads, n * 4)};
  update_weights(all, n, w);
  return all;
}
inline Accesses adamw_step(int64_t n, AdamWScalars, const float* grad_scale, OptimizedWeights w,
                           const float* grads, float* m, float* v, Stream) {
  Accesses all = optimizer_step(n, grad_scale, w, grads);
  for (float* moment : {m, v}) update(all, in(moment, n * 4));
  return all;
}
inline Accesses lion_step(int64_t n, LionScalars, const float* grad_scale, OptimizedWeights w,
                          const float* grads, float* m, Stream) {
  Accesses all = optimizer_step(n, grad_scale, w, grads);
  update(all, in(m, n * 4));
  return all;
}
inline Accesses sgd_step(int64_t n, SgdScalars, const float* grad_scale, OptimizedWeights w,
                         const float* grads, float* momentum, Stream) {
  Accesses all = optimizer_step(n, grad_scale, w, grads);
  update(all, in(momentum, n * 4));
  return all;
}
inline Accesses muon_momentum(int64_t n, double, bool, const float* grad_scale, const float* grads,
                              float* buffer, Dtype t, void* update_of_weights, Stream) {
  Accesses all = {in(grad_scale, 4), in(grads, n * 4), out(update_of_weights, n * width(t))};
  update(all, in(buffer, n * 4));
  return all;
}
inline Accesses add_update(int64_t n, double, double, OptimizedWeights w, Dtype t,
                           const void* update_of_weights, Stream) {
  Accesses all = {in(update_of_weights, n * width(t))};
  update_weights(all, n, w);
  return all;
}
inline Accesses sum_of_squares(int64_t n, const float* x, double* sum, Stream) {
  Accesses all = {in(x, n * 4)};
  update(all, in(sum, 8));
  return all;
}
inline Accesses cast(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream) {
  return {in(x, n * width(from)), out(y, n * width(to))};
}
inline Accesses add_to_fp32(int64_t n, Dtype t, const void* x, float* y, Stream) {
  Accesses all = {in(x, n * width(t))};
  update(all, in(y, n * 4));
  return all;
}

inline Accesses fp8_rows(RowsShape s, int64_t row_step, Fp8Rule, const void* x, uint8_t* codes,
                         float* factors, Stream) {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), out(codes, s.rows * s.dim), out(factors, s.rows * 4)};
}
inline Accesses fp8_amax(RowsShape s, int64_t row_step, bool, const void* x, float* amax, float* workspace,
                         Stream) {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), out(amax, s.dim * 4),
          scratch(workspace, tycho::cpu_kernels().fp8_amax_workspace(s) * 4)};
}
inline Accesses fp8_cast(RowsShape s, int64_t row_step, Fp8Rule, bool transposed, const void* x,
                         const float* amax, uint8_t* codes, float* factors, Stream) {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), in(amax, transposed ? s.dim * 4 : 4),
          out(codes, s.rows * s.dim), out(factors, (transposed ? s.dim : s.rows) * 4)};
}

// Entries that launch nothing.
inline constexpr std::nullptr_t rms_norm_backward_workspace{}, layer_norm_backward_workspace{},
    bias_activation_backward_workspace{}, bias_gradient_workspace{}, fp8_amax_workspace{},
    embedding_backward_workspace{};

inline Accesses run_program(RowsShape s, const TileProgram& program, const ProgramMemory* arrays, Stream) {
  Accesses all;
  for (int32_t i = 0; i < program.num_arrays; ++i) {
    const ProgramMemory& array = arrays[i];
    if (array.weights != nullptr && array.written) {
      update_weights(all, s.rows * s.dim, *array.weights);
    } else if (array.weights != nullptr && array.read) {
      const bool mixed = array.weights->master != nullptr;
      all.push_back(in(mixed ? array.weights->master : array.weights->params,
                       s.rows * s.dim * (mixed ? 4 : width(array.dtype))));
    } else if (array.read || array.written) {
      const int64_t each = width(array.dtype), count = array.step == 0 ? 1 : s.dim;
      const Access access = in_rows(array.data, s.rows, count * each, array.row_step * each);
      if (array.read) all.push_back(access);
      if (array.written) all.push_back(written(access));
    }
  }
  return all;
}

}  // namespace standin::accesses_of
