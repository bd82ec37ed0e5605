// Lists the accesses of each kernel from its arguments.
#include "trainer/kernels/twins/kernel_work.h"

#include <algorithm>

#include "trainer/kernels/twins/accesses.h"

namespace tycho {
namespace {

KernelWork norm_backward(NormShape s, Dtype t, const void* x, const void* weight, const void* dy, void* dx,
                         bool add_to_dx) {
  const int64_t row = s.groups * s.dim * width(t);
  KernelWork all = {in_rows(x, s.rows, row, s.x_step * width(t)), in(weight, s.dim * width(t)),
                    in_rows(dy, s.rows, row, s.y_step * width(t))};
  all.update(in_rows(dx, s.rows, row, s.dx_step * width(t)), add_to_dx);
  return all;
}
void write_casts(KernelWork& all, int64_t rows, int64_t dim, const CastRows& casts) {
  all.add(out(casts.codes, rows * dim));
  for (float* of_rows : {casts.factors_R, casts.amax_R}) all.add(out(of_rows, rows * 4));
}
void read_heads(KernelWork& all, const AttentionShape& s, Dtype t, const HeadRows& x, int64_t heads) {
  const int64_t each = width(t);
  for (int64_t head = 0; head < heads; ++head)
    all.add(in_rows(static_cast<const char*>(x.data) + head * x.head_step * each, s.batch * s.seq,
                    s.head_dim * each, x.row_step * each));
}
void update_weights(KernelWork& all, int64_t n, const OptimizedWeights& w) {
  if (w.master != nullptr) all.update(in(w.master, n * 4));
  all.update(in(w.params, n * width(w.dtype)), w.master == nullptr);
}
KernelWork optimizer_step(int64_t n, const float* grad_scale, const OptimizedWeights& w, const float* grads,
                          std::initializer_list<const float*> state) {
  KernelWork all = {in(grad_scale, 4), in(grads, n * 4)};
  update_weights(all, n, w);
  for (const float* buffer : state) all.update(in(buffer, n * 4));
  return all;
}

}  // namespace

double KernelWork::bytes(bool written) const {
  double sum = 0;
  for (const Access& one : accesses)
    if (one.written == written)
      sum += one.times * static_cast<double>(one.rows) * static_cast<double>(one.row_bytes);
  return sum;
}

KernelWork WorkOf::rms_norm(NormShape s, Dtype t, const void* x, const void* weight, float, float, void* y,
                            float* inv_rms, NormAdds adds, CastRows casts, Stream) const {
  const int64_t row = s.groups * s.dim * width(t);
  KernelWork all = {in_rows(x, s.rows, row, s.x_step * width(t)),
                    in(weight, s.dim * width(t)),
                    in(adds.before, s.rows * row),
                    in(adds.after, s.rows * row),
                    out(adds.sum, s.rows * row),
                    written(in_rows(y, s.rows, row, s.y_step * width(t))),
                    out(inv_rms, s.rows * s.groups * 4)};
  write_casts(all, s.rows, s.dim, casts);
  return all;
}
KernelWork WorkOf::rms_norm_backward(NormShape s, Dtype t, const void* x, const void* weight, float,
                                     const float* inv_rms, const void* dy, void* dx, bool add_to_dx,
                                     float* dweight, bool add_to_dweight, float* workspace, Stream) const {
  KernelWork all = norm_backward(s, t, x, weight, dy, dx, add_to_dx);
  all.add(in(inv_rms, s.rows * s.groups * 4));
  all.add(scratch(workspace, rms_norm_backward_workspace(s) * 4));
  all.update(in(dweight, s.dim * 4), add_to_dweight);
  return all;
}
KernelWork WorkOf::layer_norm(NormShape s, Dtype t, const void* x, const void* weight, const void* bias,
                              float, void* y, float* mean, float* inv_std, NormAdds adds, CastRows casts,
                              Stream stream) const {
  KernelWork all = rms_norm(s, t, x, weight, 0, 0, y, mean, adds, casts, stream);
  all.add(in(bias, s.dim * width(t)));
  all.add(out(inv_std, s.rows * s.groups * 4));
  return all;
}
KernelWork WorkOf::layer_norm_backward(NormShape s, Dtype t, const void* x, const void* weight,
                                       const float* mean, const float* inv_std, const void* dy, void* dx,
                                       bool add_to_dx, float* dweight, float* dbias, bool add_to_dweight,
                                       float* workspace, Stream) const {
  KernelWork all = norm_backward(s, t, x, weight, dy, dx, add_to_dx);
  all.add(scratch(workspace, layer_norm_backward_workspace(s) * 4));
  for (const float* statistic : {mean, inv_std}) all.add(in(statistic, s.rows * s.groups * 4));
  for (float* gradient : {dweight, dbias}) all.update(in(gradient, s.dim * 4), add_to_dweight);
  return all;
}

KernelWork WorkOf::activation(int64_t n, Dtype t, Activation, const void* x, void* y, Stream) const {
  return {in(x, n * width(t)), out(y, n * width(t))};
}
KernelWork WorkOf::activation_backward(int64_t n, Dtype t, Activation, const void* x, const void* dy,
                                       void* dx, void* y, Stream) const {
  return {in(x, n * width(t)), in(dy, n * width(t)), out(dx, n * width(t)), out(y, n * width(t))};
}
KernelWork WorkOf::gated_activation(RowsShape s, Dtype t, Activation, const void* gate_up, void* y,
                                    Stream) const {
  const int64_t half = s.rows * s.dim * width(t);
  return {in(gate_up, 2 * half), out(y, half)};
}
KernelWork WorkOf::gated_activation_backward(RowsShape s, Dtype t, Activation, const void* gate_up,
                                             const void* dy, void* dgate_up, void* y, Stream) const {
  const int64_t half = s.rows * s.dim * width(t);
  return {in(gate_up, 2 * half), in(dy, half), out(dgate_up, 2 * half), out(y, half)};
}
KernelWork WorkOf::add_bias(RowsShape s, Dtype t, const void* bias, const void* x, void* y, Stream) const {
  const int64_t all = s.rows * s.dim * width(t);
  return {in(bias, s.dim * width(t)), in(x, all), out(y, all)};
}
KernelWork WorkOf::bias_activation(RowsShape s, Dtype t, Activation, const void* bias, const void* x, void* y,
                                   Stream stream) const {
  return add_bias(s, t, bias, x, y, stream);
}
KernelWork WorkOf::bias_activation_backward(RowsShape s, Dtype t, Activation, const void* bias, const void* x,
                                            const void* dy, void* dx, void* y, float* dbias,
                                            bool add_to_dbias, float* workspace, Stream) const {
  const int64_t bytes = s.rows * s.dim * width(t);
  KernelWork all = {in(bias, s.dim * width(t)), in(x, bytes), in(dy, bytes), out(dx, bytes), out(y, bytes)};
  all.add(scratch(workspace, bias_activation_backward_workspace(s) * 4));
  all.update(in(dbias, s.dim * 4), add_to_dbias);
  return all;
}
KernelWork WorkOf::activation_casts(RowsShape s, Activation, bool gated, const void* bias, const void* x,
                                    void* y, CastRows casts, Stream) const {
  const int64_t bytes = s.rows * s.dim * 2;
  KernelWork all = {in(bias, s.dim * 2), in(x, (gated ? 2 : 1) * bytes), out(y, bytes)};
  write_casts(all, s.rows, s.dim, casts);
  return all;
}
KernelWork WorkOf::bias_gradient(RowsShape s, Dtype t, const void* dy, float* dbias, bool add,
                                 float* workspace, Stream) const {
  KernelWork all = {in(dy, s.rows * s.dim * width(t)), scratch(workspace, bias_gradient_workspace(s) * 4)};
  all.update(in(dbias, s.dim * 4), add);
  return all;
}
KernelWork WorkOf::clamp(int64_t n, Dtype t, float, const void* x, void* y, Stream) const {
  return {in(x, n * width(t)), out(y, n * width(t))};
}
KernelWork WorkOf::clamp_backward(int64_t n, Dtype t, float, const void* x, const void* dy, void* dx,
                                  Stream) const {
  return {in(x, n * width(t)), in(dy, n * width(t)), out(dx, n * width(t))};
}
KernelWork WorkOf::dropout(RowsShape s, Dtype t, DropoutMask, const void* x, const void* residual, void* y,
                           Stream) const {
  const int64_t bytes = s.rows * s.dim * width(t);
  return {in(x, bytes), in(residual, bytes), out(y, bytes)};
}

KernelWork WorkOf::rope(RopeShape s, Dtype t, const float* cos_sin, bool, void* qkv, Stream) const {
  KernelWork all = {
      in(cos_sin + s.first_position * s.rotary_dim, std::min(s.seq, s.rows) * s.rotary_dim * 4)};
  Access heads = in_rows(qkv, s.rows, s.rotated_heads * s.head_dim * width(t), s.row_width * width(t));
  heads.times = static_cast<double>(s.rotary_dim) / static_cast<double>(s.head_dim);
  all.update(heads);
  return all;
}
KernelWork WorkOf::pack_gradients(AttentionShape s, Dtype t, HeadRows dq, HeadRows dk, HeadRows dv,
                                  Rotations tables, AttentionGradients to, Stream) const {
  const int64_t rows = s.batch * s.seq, head = s.head_dim * width(t);
  KernelWork all;
  read_heads(all, s, t, dq, s.heads), read_heads(all, s, t, dk, s.kv_heads);
  read_heads(all, s, t, dv, s.kv_heads);
  for (const float* angles : {tables.queries, tables.keys})
    all.add(in(angles, s.seq * tables.rotary_dim * 4));
  all.add(written(in_rows(to.dq, rows, s.heads * head, to.q_step * width(t))));
  all.add(written(in_rows(to.dkv, rows, 2 * s.kv_heads * head, to.kv_step * width(t))));
  return all;
}
KernelWork WorkOf::temperature(RowsShape s, int64_t row_step, Dtype t, TemperatureRule,
                               RowPositions positions, void* x, Stream) const {
  KernelWork all = {in(positions.position_N, s.rows * 4)};
  all.update(in_rows(x, s.rows, s.dim * width(t), row_step * width(t)));
  return all;
}

KernelWork WorkOf::embedding(RowsShape s, Dtype t, const int32_t* tokens, const void* table, PositionRows p,
                             void* y, Stream) const {
  const int64_t row = s.dim * width(t);
  const auto* positions = static_cast<const char*>(p.table);
  Access looked_up = in(table, row);
  looked_up.chosen = Access::Chosen::kOfTable, looked_up.times = static_cast<double>(s.rows);
  return {
      in(tokens, s.rows * 4), looked_up,
      in(positions == nullptr ? nullptr : positions + p.first_position * row, std::min(p.seq, s.rows) * row),
      out(y, s.rows * row)};
}
KernelWork WorkOf::embedding_backward(RowsShape s, Dtype t, const int32_t* tokens, int64_t vocab,
                                      const void* dy, float* dtable, void* workspace, Stream) const {
  KernelWork all = {in(tokens, s.rows * 4), in(dy, s.rows * s.dim * width(t)),
                    scratch(workspace, embedding_backward_workspace(s, vocab))};
  Access table = some_of(in_rows(dtable, vocab, s.dim * 4, s.dim * 4));
  table.times = std::min(1.0, static_cast<double>(s.rows) / static_cast<double>(vocab));
  all.update(table);
  return all;
}
KernelWork WorkOf::position_gradient(RowsShape s, Dtype t, int64_t seq, const void* dy, float* dtable,
                                     bool add, Stream) const {
  KernelWork all = {in(dy, s.rows * s.dim * width(t))};
  all.update(in(dtable, seq * s.dim * 4), add);
  return all;
}

KernelWork WorkOf::cross_entropy(RowsShape s, Dtype t, LogitRules, void* logits, const int32_t* targets,
                                 const float* weight, bool write_gradient, float* loss, Stream) const {
  const int64_t row = s.dim * width(t);
  KernelWork all = {some_of(in_rows(logits, s.rows, row, row)), in(targets, s.rows * 4),
                    out(loss, s.rows * 4)};
  if (write_gradient) all.add(some_of(in(weight, 4))), all.add(out(logits, s.rows * row));
  return all;
}
// Rows that losses ignore are not read.
KernelWork WorkOf::token_statistics(RowsShape s, Dtype t, LogitRules, const void* logits,
                                    const int32_t* targets, float* statistics, Stream) const {
  const int64_t row = s.dim * width(t);
  return {some_of(in_rows(logits, s.rows, row, row)), in(targets, s.rows * 4),
          out(statistics, s.rows * kTokenStatistics * 4)};
}
KernelWork WorkOf::token_statistics_backward(RowsShape s, Dtype t, LogitRules, int64_t, void* logits,
                                             const int32_t* targets, const float* statistics,
                                             const float* gradients, const float* weight, Stream) const {
  const int64_t row = s.dim * width(t);
  KernelWork all = {in(targets, s.rows * 4), some_of(in_rows(logits, s.rows, row, row)),
                    out(logits, s.rows * row)};
  for (const TokenStatistic used : {kMaxLogit, kLogSum, kExpectedBelowMax, kNumLargest})
    all.add(some_of(in_rows(statistics + used * s.rows, s.rows, 4, 4)));
  all.add(some_of(in_rows(gradients, s.rows * kLossStatistics, 4, 4)));
  all.add(some_of(in(weight, 4)));
  return all;
}

KernelWork WorkOf::adamw_step(int64_t n, AdamWScalars, const float* grad_scale, OptimizedWeights w,
                              const float* grads, float* m, float* v, Stream) const {
  return optimizer_step(n, grad_scale, w, grads, {m, v});
}
KernelWork WorkOf::lion_step(int64_t n, LionScalars, const float* grad_scale, OptimizedWeights w,
                             const float* grads, float* m, Stream) const {
  return optimizer_step(n, grad_scale, w, grads, {m});
}
KernelWork WorkOf::sgd_step(int64_t n, SgdScalars, const float* grad_scale, OptimizedWeights w,
                            const float* grads, float* momentum, Stream) const {
  return optimizer_step(n, grad_scale, w, grads, {momentum});
}
KernelWork WorkOf::muon_momentum(int64_t n, double, bool, const float* grad_scale, const float* grads,
                                 float* buffer, Dtype t, void* update_of_weights, Stream) const {
  KernelWork all = {in(grad_scale, 4), in(grads, n * 4), out(update_of_weights, n * width(t))};
  all.update(in(buffer, n * 4));
  return all;
}
KernelWork WorkOf::add_update(int64_t n, double, double, OptimizedWeights w, Dtype t,
                              const void* update_of_weights, Stream) const {
  KernelWork all = {in(update_of_weights, n * width(t))};
  update_weights(all, n, w);
  return all;
}
KernelWork WorkOf::sum_of_squares(int64_t n, const float* x, double* sum, Stream) const {
  KernelWork all = {in(x, n * 4)};
  all.update(in(sum, 8));
  return all;
}
KernelWork WorkOf::cast(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream) const {
  return {in(x, n * width(from)), out(y, n * width(to))};
}
KernelWork WorkOf::add_to_fp32(int64_t n, Dtype t, const void* x, float* y, Stream) const {
  KernelWork all = {in(x, n * width(t))};
  all.update(in(y, n * 4));
  return all;
}

KernelWork WorkOf::fp8_row_amax(RowsShape s, int64_t row_step, const void* x, float* amax, Stream) const {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), out(amax, s.rows * 4)};
}
KernelWork WorkOf::fp8_rows(RowsShape s, int64_t row_step, Fp8Rule, const void* x, const float* amax,
                            uint8_t* codes, float* factors, Stream) const {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), in(amax, s.rows * 4), out(codes, s.rows * s.dim),
          out(factors, s.rows * 4)};
}
KernelWork WorkOf::fp8_amax(RowsShape s, int64_t row_step, bool, const void* x, float* amax, float* workspace,
                            Stream) const {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), out(amax, s.dim * 4),
          scratch(workspace, fp8_amax_workspace(s) * 4)};
}
KernelWork WorkOf::fp8_cast(RowsShape s, int64_t row_step, Fp8Rule, bool transposed, const void* x,
                            const float* amax, uint8_t* codes, float* factors, Stream) const {
  return {in_rows(x, s.rows, s.dim * 2, row_step * 2), in(amax, transposed ? s.dim * 4 : 4),
          out(codes, s.rows * s.dim), out(factors, (transposed ? s.dim : s.rows) * 4)};
}
KernelWork WorkOf::fp8_turn(RowsShape s, const uint8_t* codes, const float* factor, uint8_t* turned,
                            float* factors, Stream) const {
  return {in(codes, s.rows * s.dim), in(factor, 4), out(turned, s.rows * s.dim), out(factors, s.dim * 4)};
}

KernelWork WorkOf::run_program(RowsShape s, const TileProgram& program, const ProgramMemory* arrays,
                               Stream) const {
  KernelWork all;
  for (int32_t i = 0; i < program.num_arrays; ++i) {
    const ProgramMemory& array = arrays[i];
    if (array.weights != nullptr && array.written) {
      update_weights(all, s.rows * s.dim, *array.weights);
    } else if (array.weights != nullptr && array.read) {
      const bool mixed = array.weights->master != nullptr;
      all.add(in(mixed ? array.weights->master : array.weights->params,
                 s.rows * s.dim * (mixed ? 4 : width(array.dtype))));
    } else if (array.read || array.written) {
      const int64_t each = width(array.dtype), count = array.step == 0 ? 1 : s.dim;
      const Access access = in_rows(array.data, s.rows, count * each, array.row_step * each);
      if (array.read) all.add(access);
      if (array.written) all.add(written(access));
    }
  }
  return all;
}

int64_t WorkOf::rms_norm_backward_workspace(NormShape s) const {
  return table_.rms_norm_backward_workspace(s);
}
int64_t WorkOf::layer_norm_backward_workspace(NormShape s) const {
  return table_.layer_norm_backward_workspace(s);
}
int64_t WorkOf::bias_activation_backward_workspace(RowsShape s) const {
  return table_.bias_activation_backward_workspace(s);
}
int64_t WorkOf::bias_gradient_workspace(RowsShape s) const { return table_.bias_gradient_workspace(s); }
int64_t WorkOf::fp8_amax_workspace(RowsShape s) const { return table_.fp8_amax_workspace(s); }
int64_t WorkOf::embedding_backward_workspace(RowsShape s, int64_t vocab) const {
  return table_.embedding_backward_workspace(s, vocab);
}

KernelWork WorkOf::normal_numbers(int64_t groups, uint64_t, uint64_t, double, float* numbers) const {
  return {out(numbers, groups * 16)};
}

}  // namespace tycho
