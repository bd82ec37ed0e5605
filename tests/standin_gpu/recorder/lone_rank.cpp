// Answers collectives in host memory without any other rank.
#include "tests/standin_gpu/recorder/lone_rank.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "trainer/comm/collective_checks.h"
#include "trainer/recipe/mesh_groups.h"

namespace standin {
namespace {

using tycho::AxisSet, tycho::Communicator, tycho::MeshShape, tycho::Tensor;

class LoneRank final : public Communicator {
 public:
  LoneRank(int size, std::deque<int> splits) : size_(size), splits_(std::move(splits)) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  void all_reduce(Tensor& x) override {
    tycho::check_sum("all_reduce", x);
    if (is_row_of_all_ranks(x))
      x.fill_(x[0].item<int64_t>());
    else
      x.mul_(size_);
  }
  void all_gather(Tensor& out, const Tensor& in) override {
    tycho::check_all_gather(out, in, *this);
    auto* to = static_cast<char*>(out.data_ptr());
    for (int r = 0; r < size_; ++r)
      std::memmove(to + static_cast<size_t>(r) * in.nbytes(), in.const_data_ptr(), in.nbytes());
  }
  void reduce_scatter(Tensor& out, const Tensor& in) override {
    tycho::check_reduce_scatter(out, in, *this);
    std::memmove(out.data_ptr(), in.const_data_ptr(), out.nbytes());
    out.mul_(size_);
  }
  /// Other ranks repeat what this rank sent last: strings are gathered so, one rank after the other.
  void broadcast(Tensor& x, int root) override {
    tycho::check_broadcast(x, root, *this);
    if (root == 0)
      sent_ = x.clone();
    else if (sent_.defined() && sent_.sizes() == x.sizes() && sent_.dtype() == x.dtype())
      x.copy_(sent_);
  }
  void barrier() override {}
  void send(const Tensor& x, int to) override { tycho::check_message("send", x, to, *this); }
  void recv(Tensor& x, int from) override { tycho::check_message("recv", x, from, *this); }
  /// A group that the mesh does not make (pairs of stages, copies of shared heads) has two ranks.
  std::unique_ptr<Communicator> split(int, int) override {
    int size = 2;
    if (!splits_.empty()) size = splits_.front(), splits_.pop_front();
    return std::make_unique<LoneRank>(size, std::deque<int>());
  }

 private:
  /// True for a number of each rank, of which this rank has written its own: lengths of strings.
  bool is_row_of_all_ranks(const Tensor& x) const {
    return x.scalar_type() == at::kLong && x.dim() == 1 && x.numel() == size_ &&
           x.narrow(0, 1, size_ - 1).eq(0).all().item<bool>();
  }

  int size_;
  Tensor sent_;
  std::deque<int> splits_;  // sizes of the groups that the mesh will make, in its order
};

}  // namespace

std::unique_ptr<Communicator> lone_rank_of(const MeshShape& shape) {
  std::vector<AxisSet> seen;
  std::deque<int> splits;
  for (const AxisSet axes : tycho::kMeshGroups) {
    const AxisSet used = tycho::used_axes(shape, axes);
    if (std::find(seen.begin(), seen.end(), used) != seen.end()) continue;
    seen.push_back(used);
    if (const int size = shape.size(used); size > 1 && size < shape.num_ranks()) splits.push_back(size);
  }
  if (const int cp = shape.size(tycho::Axis::kCp); cp > 1) splits.push_back(cp);
  return std::make_unique<LoneRank>(shape.num_ranks(), std::move(splits));
}

}  // namespace standin
