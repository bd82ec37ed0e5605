// Every adapter of a stack works on its own columns of the outputs.
#include "trainer/models/adapters.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "trainer/base/random/philox.h"
#include "trainer/kernels/dropout.h"
#include "trainer/kernels/matmul.h"

namespace tycho {
namespace {

constexpr uint64_t kFirstSite = 16;  // first dropout site of adapters: those before it are a block's own
                                     // (DropoutSite)

/// Returns a tensor [N, width] in a slot, or in new memory.
Tensor room(const LayerAdapters& adapters, int slot, const Tensor& like_NX, int64_t width) {
  const int64_t rows = like_NX.size(0);
  if (adapters.scratch == nullptr) return at::empty({rows, width}, like_NX.options());
  const Tensor& memory = (*adapters.scratch)[static_cast<size_t>(slot)];
  return memory.view(-1).narrow(0, 0, rows * width).view({rows, width});
}

/// Applies dropout to a part of a wider matrix: x holds its columns from `first` on.
void drop_columns(DropoutMask mask, int64_t first, const Tensor& x_NK, const Tensor& residual_NK,
                  Tensor& y_NK) {
  constexpr int64_t kElements = int64_t{1} << 22;  // elements that are in wide rows at once
  const int64_t rows = x_NK.size(0), columns = x_NK.size(1), width = first + columns;
  const int64_t most = std::clamp<int64_t>(kElements / width, 1, std::max<int64_t>(rows, 1));
  Tensor wide = at::zeros({most, width}, x_NK.options()), wide_residual;
  if (residual_NK.defined()) wide_residual = at::zeros({most, width}, x_NK.options());
  for (int64_t i = 0; i < rows; i += most) {
    const int64_t n = std::min(most, rows - i);
    const auto part = [&](const Tensor& of) { return of.defined() ? of.narrow(0, 0, n) : of; };
    const auto own = [&](const Tensor& of) { return part(of).narrow(1, first, columns); };
    own(wide).copy_(x_NK.narrow(0, i, n));
    if (residual_NK.defined()) own(wide_residual).copy_(residual_NK.narrow(0, i, n));
    Tensor dropped = part(wide);
    dropout(mask, dropped, part(wide_residual), dropped);
    y_NK.narrow(0, i, n).copy_(own(wide));
    mask.first_row += n;
  }
}

/// Applies dropout (kernels/dropout.h) to the inputs of an adapter, or to their gradient: each element is
/// dropped as it would be on one rank.
void drop(const LayerAdapters& adapters, const AdapterViews& place, const Tensor& x_NK,
          const Tensor& residual_NK, Tensor& y_NK) {
  const auto words = philox(adapters.key, kFirstSite + static_cast<uint64_t>(place.a));
  const ContextRegion& context = adapters.context;
  for_cp_runs(context.seq(), context.shape(), 0, x_NK.size(0), [&](int64_t i, int64_t j, int64_t n) {
    const DropoutMask mask = {
        .p = adapters.dropout, .key = uint64_t{words[0]} << 32 | words[1], .first_row = j};
    const auto rows = [&](const Tensor& of) { return of.defined() ? of.narrow(0, i, n) : of; };
    Tensor y = rows(y_NK);
    if (place.first_column == 0) return dropout(mask, rows(x_NK), rows(residual_NK), y);
    drop_columns(mask, place.first_column, rows(x_NK), rows(residual_NK), y);
  });
}

const Tensor& param(const LayerAdapters& adapters, int view) {
  return (*adapters.params)[static_cast<size_t>(view)];
}

/// Returns the tensor that an adapter multiplies.
Tensor input_of(const LayerAdapters& adapters, const AdapterViews& place, const Tensor& x_NK) {
  if (adapters.dropout == 0) return x_NK;
  Tensor kept_NK = room(adapters, block_scratch::kAdapterInput, x_NK, place.columns);
  drop(adapters, place, x_NK, Tensor(), kept_NK);
  return kept_NK;
}

/// Returns scale A x.
Tensor low_of(const LayerAdapters& adapters, const AdapterViews& place, const Tensor& kept_NK) {
  const Tensor& a_RK = param(adapters, place.a);
  Tensor low_NR = room(adapters, block_scratch::kLow, kept_NK, a_RK.size(0));
  matmul_nt(kept_NK, a_RK, low_NR);
  return low_NR.mul_(adapters.at->adapter_scale);
}

/// Returns the layer's columns of dy, contiguous, as matrix products need them.
Tensor own_columns(const LayerAdapters& adapters, const AdapterViews& place, const Tensor& dy_NM) {
  if (place.rows == dy_NM.size(1)) return dy_NM;
  Tensor own = room(adapters, block_scratch::kAdapterOutput, dy_NM, place.rows);
  return own.copy_(dy_NM.narrow(1, place.first, place.rows));
}

/// Returns the gradient of A x.
Tensor low_gradient(const LayerAdapters& adapters, const AdapterViews& place, const Tensor& own_dy) {
  const Tensor& b = param(adapters, place.b);
  Tensor d_low_NR = room(adapters, block_scratch::kDLow, own_dy, b.size(1));
  matmul_nn(own_dy, b, d_low_NR);
  return d_low_NR.mul_(adapters.at->adapter_scale);
}

template <class Body>
void for_places(const LayerAdapters& adapters, const Body& body) {
  if (!adapters.any()) return;
  for (const AdapterViews& place : adapters.at->adapters)
    if (place.weight == adapters.weight) body(place);
}

}  // namespace

LayerAdapters layer_adapters(const BlockParams& at, int weight, const ContextRegion& context,
                             const Views& params, BlockActivations act) {
  return {&at, weight, &params, &act.scratch, act.dropout.adapter_p, act.dropout.key, context};
}

LayerAdapters layer_adapters(const BlockParams& at, int weight, const ContextRegion&, const Views& params) {
  return {&at, weight, &params};
}

void add_adapters(const LayerAdapters& adapters, const Tensor& x_NK, Tensor& y_NM) {
  for_places(adapters, [&](const AdapterViews& place) {
    const Tensor& b = param(adapters, place.b);
    const Tensor low_NR = low_of(adapters, place, input_of(adapters, place, x_NK));
    if (place.rows == y_NM.size(1)) return matmul_nt(low_NR, b, y_NM, {.residual_NM = y_NM});
    Tensor own = room(adapters, block_scratch::kAdapterOutput, y_NM, place.rows);
    matmul_nt(low_NR, b, own);
    y_NM.narrow(1, place.first, place.rows).add_(own);
  });
}

void add_adapters_input_gradient(const LayerAdapters& adapters, const Tensor& dy_NM, Tensor& dx_NK) {
  for_places(adapters, [&](const AdapterViews& place) {
    const Tensor& a_RK = param(adapters, place.a);
    const Tensor d_low_NR = low_gradient(adapters, place, own_columns(adapters, place, dy_NM));
    if (adapters.dropout == 0) return matmul_nn(d_low_NR, a_RK, dx_NK, {.residual_NM = dx_NK});
    Tensor d_kept_NK = room(adapters, block_scratch::kAdapterInput, dx_NK, place.columns);
    matmul_nn(d_low_NR, a_RK, d_kept_NK);
    drop(adapters, place, d_kept_NK, dx_NK, dx_NK);
  });
}

void adapters_weight_gradient(const LayerAdapters& adapters, const Tensor& x_NK, const Tensor& dy_NM,
                              Views& grads, bool add) {
  for_places(adapters, [&](const AdapterViews& place) {
    Tensor &da_RK = grads[static_cast<size_t>(place.a)], &db = grads[static_cast<size_t>(place.b)];
    if (!da_RK.defined() && !db.defined()) return;
    const Tensor kept_NK = input_of(adapters, place, x_NK), own_dy = own_columns(adapters, place, dy_NM);
    if (db.defined()) matmul_tn(own_dy, low_of(adapters, place, kept_NK), db, add);
    if (da_RK.defined()) matmul_tn(low_gradient(adapters, place, own_dy), kept_NK, da_RK, add);
  });
}

}  // namespace tycho
