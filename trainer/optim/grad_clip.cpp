// One norm over all flat buffers, left on the device.
#include "trainer/optim/grad_clip.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include "trainer/kernels/optimizer/grad_norm.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/optim/exact_squares.h"
#include "trainer/optim/row_blocks.h"

namespace tycho {
namespace {

/// The offsets of the rows of each unit's parameters in a list of all rows. The same on all ranks.
class RowList {
 public:
  explicit RowList(const std::vector<OwnedRange>& ranges) {
    for (const OwnedRange& range : ranges) {
      first_.emplace_back();
      for (const Extent& param : range.layout.extents()) {
        first_.back().push_back(size_);
        size_ += num_rows(*param.spec);
      }
    }
  }
  int64_t size() const { return size_; }
  Tensor rows_of(const Tensor& of_all, size_t unit, const Extent& extent, const RowBlock& block) const {
    return of_all.narrow(0, first_[unit][extent.param] + block.row, block.rows);
  }

 private:
  std::vector<std::vector<int64_t>> first_;
  int64_t size_ = 0;
};

/// Scales rows of matrices, and whole vectors, to `ratio` of their weights' norm. Ranks may own any parts of
/// a row: squares are summed over all of them.
void clip_rows(double ratio, const std::vector<OwnedRange>& ranges, const ParamRules& rules,
               Communicator& owners) {
  if (ranges.empty()) return;
  const RowList list(ranges);
  const auto options = ranges.front().params.options().dtype(at::kDouble);
  Tensor squares_2R = at::zeros({2, list.size()}, options);
  const auto each = [&](const auto& take) {
    for (size_t u = 0; u < ranges.size(); ++u)
      for (const Extent& extent : ranges[u].extents)
        if (!rules[u][extent.param].frozen) take(u, extent);
  };
  each([&](size_t u, const Extent& extent) {
    for (const Extent& part : counted(extent))
      for (const RowBlock& block : row_blocks(part))
        for (const int64_t which : {0, 1}) {
          const Tensor rows = in_buffer(which == 0 ? ranges[u].master : ranges[u].grads, block);
          list.rows_of(squares_2R[which], u, extent, block)
              .add_(at::linalg_vector_norm(rows, 2, at::IntArrayRef({1}), /*keepdim=*/false, at::kDouble)
                        .square_());
        }
  });
  owners.all_reduce(squares_2R);
  const Tensor norms_2R = squares_2R.sqrt_();
  const Tensor scale_R =
      norms_2R[0].mul(ratio).div_(norms_2R[1]).nan_to_num_(1.0).clamp_max_(1.0).to(at::kFloat);
  each([&](size_t u, const Extent& extent) {
    for (const RowBlock& block : row_blocks(extent))
      in_buffer(ranges[u].grads, block).mul_(list.rows_of(scale_R, u, extent, block).unsqueeze(1));
  });
}

}  // namespace

Tensor sum_of_squares(const std::vector<Tensor>& flats) {
  Tensor sum_1 = at::zeros({1}, flats.front().options().dtype(at::kDouble));
  for (const Tensor& flat : flats)
    if (flat.numel() > 0) add_sum_of_squares(flat.to(at::kFloat), sum_1);
  return sum_1;
}

GradNorm clip_gradients(const ClipConfig& config, const std::vector<Tensor>& grads, Communicator& owners,
                        SquareSum sum) {
  Tensor sum_1;
  if (sum == SquareSum::kExact) {
    Tensor parts = exact_squares(grads);
    owners.all_reduce(parts);
    sum_1 = total_of_squares(parts);
  } else {
    sum_1 = sum_of_squares(grads);
    owners.all_reduce(sum_1);
  }
  const auto options = sum_1.options().dtype(at::kFloat);
  GradNorm result = {at::empty({1}, options), at::empty({1}, options)};
  clip_scale(sum_1, config.by_element_or_row() ? 0 : config.norm, result.norm_1, result.scale_1);
  return result;
}

void clip_in_place(const ClipConfig& config, const std::vector<OwnedRange>& ranges, const ParamRules& rules,
                   Communicator& owners) {
  if (config.value)
    for (size_t u = 0; u < ranges.size(); ++u)
      for (const Extent& e : ranges[u].extents)
        if (!rules[u][e.param].frozen)
          ranges[u].grads.narrow(0, e.begin, e.size()).clamp_(-*config.value, *config.value);
  if (config.adaptive) clip_rows(*config.adaptive, ranges, rules, owners);
}

}  // namespace tycho
