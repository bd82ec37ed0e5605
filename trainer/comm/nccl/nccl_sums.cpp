// Every rank sends each other rank its piece, and adds the pieces that it receives: as many bytes as NCCL's
// own reduce-scatter. An all-reduce gathers these sums.
#include "trainer/comm/nccl/nccl_sums.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "trainer/comm/device_rank_sums.h"
#include "trainer/comm/nccl/nccl_together.h"

namespace tycho {
/// Returns the number of elements of each piece that are summed at once.
int64_t NcclSums::numbers_at_once(const Tensor& x) const {
  return std::max<int64_t>(1, kSumWorkspaceBytes / (size_ * x.element_size()));
}

/// Sends piece r of pieces_RN to rank r. Row r of the result is rank r's piece for this rank.
Tensor NcclSums::exchanged(const Tensor& pieces_RN, Stream stream) const {
  Tensor rows_RN = at::empty(pieces_RN.sizes(), pieces_RN.options());
  rows_RN[rank_].copy_(pieces_RN[rank_]);
  if (size_ == 1) return rows_RN;
  const NcclTable::Group group = group_.get();
  const auto num_bytes = static_cast<int64_t>(rows_RN[rank_].nbytes());
  NcclTogether together(group);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    const Tensor to = pieces_RN[r], from = rows_RN[r];
    nccl().send(group, to.data_ptr(), num_bytes, r, stream);
    nccl().recv(group, from.data_ptr(), num_bytes, r, stream);
  }
  together.end();
  return rows_RN;
}

void NcclSums::reduce_scatter(const Tensor& out, const Tensor& in, Stream stream) const {
  const int64_t each = out.numel(), at_once = numbers_at_once(in);
  const Tensor in_RN = in.view({size_, each}), out_N = out.view({each});
  for (int64_t begin = 0; begin < each; begin += at_once) {
    const int64_t count = std::min(at_once, each - begin);
    out_N.narrow(0, begin, count).copy_(sum_as_tree(exchanged(in_RN.narrow(1, begin, count), stream)));
  }
}

void NcclSums::all_reduce(const Tensor& x, Stream stream) const {
  const Tensor x_N = x.view({-1});
  const int64_t at_once = size_ * numbers_at_once(x);
  for (int64_t begin = 0; begin < x_N.numel(); begin += at_once) {
    const Tensor part = x_N.narrow(0, begin, std::min(at_once, x_N.numel() - begin));
    const int64_t each = (part.numel() + size_ - 1) / size_;
    const bool fits = part.numel() == each * size_;
    const Tensor padded = fits ? part : at::zeros({each * size_}, x.options());
    if (!fits) padded.narrow(0, 0, part.numel()).copy_(part);
    const Tensor sum = sum_as_tree(exchanged(padded.view({size_, each}), stream));
    nccl().all_gather(group_.get(), sum.data_ptr(), padded.data_ptr(), static_cast<int64_t>(sum.nbytes()),
                      stream);
    if (!fits) part.copy_(padded.narrow(0, 0, part.numel()));
  }
}

}  // namespace tycho
