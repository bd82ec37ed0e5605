// Rows are exchanged in the order of ranks and stored in the order of positions, with a copy before or after
// each exchange.
#include "trainer/models/context/context_region.h"

#include <ATen/ops/stack.h>

#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

CpShape ContextRegion::shape() const {
  if (!is_shared()) return {};
  return {ranks_->size(), ranks_->rank(), ring_};
}

std::array<Tensor, 2> ContextRegion::spans_of(const Tensor& all, int64_t rank) const {
  const int64_t parts = 2 * ranks_->size();
  std::vector<int64_t> sizes = all.sizes().vec();
  sizes.erase(sizes.begin());
  sizes.insert(sizes.begin(), {all.size(0) / seq_, parts, seq_ / parts});
  const Tensor by_part = all.view(sizes);
  return {by_part.select(1, rank), by_part.select(1, parts - 1 - rank)};
}

Tensor ContextRegion::own(const Tensor& x_BT) const {
  if (!is_shared() || !x_BT.defined()) return x_BT;
  const auto [early, late] = spans_of(x_BT, ranks_->rank());
  return at::stack({early, late}, 1).view({-1});
}

Tensor ContextRegion::own_rows(const Tensor& table_PD) const {
  const auto [early, late] = cp_spans(seq_, shape());
  return joined({table_PD.narrow(0, early.first, early.count), table_PD.narrow(0, late.first, late.count)});
}

void ContextRegion::put_rows(const Tensor& own_TD, Tensor& table_PD, bool add) const {
  if (!add) table_PD.zero_();
  int64_t row = 0;
  for (const CpSpan& span : cp_spans(seq_, shape())) {
    table_PD.narrow(0, span.first, span.count).add_(own_TD.narrow(0, row, span.count));
    row += span.count;
  }
}

void ContextRegion::gather(const Tensor& own_NW, Tensor& room, Tensor& all) const {
  const int64_t rows = own_NW.size(0), batch = all.size(0) / seq_, part = rows / batch / 2;
  room.narrow(0, ranks_->rank() * rows, rows).copy_(own_NW);
  ranks_->all_gather(room, room.narrow(0, ranks_->rank() * rows, rows));
  const Tensor by_rank = room.view({ranks_->size(), batch, 2, part, own_NW.size(1)});
  for (int64_t rank = 0; rank < ranks_->size(); ++rank) {
    const std::array<Tensor, 2> to = spans_of(all, rank);
    for (int64_t i : {0, 1}) to[static_cast<size_t>(i)].copy_(by_rank[rank].select(1, i));
  }
}

void ContextRegion::scatter(const Tensor& all, Tensor& room, const Tensor& own_NW) const {
  const int64_t rows = own_NW.size(0), batch = all.size(0) / seq_, part = rows / batch / 2;
  const Tensor by_rank = room.view({ranks_->size(), batch, 2, part, own_NW.size(1)});
  for (int64_t rank = 0; rank < ranks_->size(); ++rank) {
    const std::array<Tensor, 2> from = spans_of(all, rank);
    for (int64_t i : {0, 1}) by_rank[rank].select(1, i).copy_(from[static_cast<size_t>(i)]);
  }
  Tensor sum = room.narrow(0, ranks_->rank() * rows, rows);
  ranks_->reduce_scatter(sum, room);
  own_NW.copy_(sum);
}

}  // namespace tycho
