// One rank that calls every verb of the communicator with tensors on its GPU, and compares with what it can
// say of the others' numbers. Prints what differs. With the argument "tree" sums are those of a tree.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>
#include <fmt/core.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/comm/world.h"
#include "trainer/device/device.h"
#include "trainer/rendezvous/rank_info.h"

namespace tycho {
namespace {

constexpr int64_t kCount = 140'001;  // of a piece: 8-byte numbers fill more than a slot
int num_failed = 0;

void expect_equal(const Tensor& x, const Tensor& wanted, const std::string& what) {
  if (at::equal(x.cpu(), wanted)) return;
  fmt::print("{} differs\n", what);
  ++num_failed;
}

/// Of a rank, whole and different at every place; in host memory.
Tensor numbers(int rank, int64_t count, at::ScalarType dtype) {
  Tensor x = at::empty({count}, at::kInt);
  for (int64_t i = 0; i < count; ++i) x.data_ptr<int>()[i] = static_cast<int>((rank * 37 + i * 11) % 61);
  return x.to(dtype);
}

void check_collectives(Communicator& group, const std::vector<int>& ranks, const at::Device& device,
                       at::ScalarType dtype) {
  const auto size = static_cast<int64_t>(ranks.size());
  const int own = ranks.at(static_cast<size_t>(group.rank()));
  const std::string of = fmt::format(" of {} over {} ranks", c10::toString(dtype), size);
  Tensor all = at::empty({size, kCount}, dtype), sum = at::zeros({size * kCount}, at::kInt);
  for (int64_t r = 0; r < size; ++r) {
    all[r].copy_(numbers(ranks[static_cast<size_t>(r)], kCount, dtype));
    sum.add_(numbers(ranks[static_cast<size_t>(r)], size * kCount, at::kInt));
  }
  const Tensor piece = sum.view({size, kCount})[group.rank()].to(dtype);
  const Tensor mine = numbers(own, kCount, dtype).to(device),
               whole = numbers(own, size * kCount, dtype).to(device);
  Tensor gathered = at::zeros({size, kCount}, mine.options()),
         scattered = at::zeros({kCount}, mine.options());
  group.all_gather(gathered, mine);
  expect_equal(gathered, all, "all_gather" + of);
  group.reduce_scatter(scattered, whole);
  expect_equal(scattered, piece, "reduce_scatter" + of);
  gathered.zero_(), scattered.zero_();
  gathered[group.rank()].copy_(mine);
  Tensor summed = whole.clone();
  const auto gathering = group.start(GroupedCall::all_gather(gathered, gathered[group.rank()]));
  const auto scattering = group.start(GroupedCall::reduce_scatter(scattered, whole));
  const auto summing = group.start(GroupedCall::all_reduce(summed));
  gathering->wait(), scattering->wait(), summing->wait();
  expect_equal(gathered, all, "start_all_gather in place" + of);
  expect_equal(scattered, piece, "start_reduce_scatter" + of);
  expect_equal(summed, sum.to(dtype), "start_all_reduce" + of);
  Tensor copy = mine.clone();
  group.broadcast(copy, static_cast<int>(size) - 1);
  expect_equal(copy, all[size - 1], "broadcast" + of);
}

void check_messages(Communicator& world, const at::Device& device) {
  const int next = (world.rank() + 1) % world.size(),
            previous = (world.rank() + world.size() - 1) % world.size();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kLong}) {
    const Tensor mine = numbers(world.rank(), kCount, dtype).to(device);
    Tensor theirs = at::zeros({kCount}, mine.options());
    if (world.rank() == 0)
      world.send(mine, next), world.recv(theirs, previous);
    else
      world.recv(theirs, previous), world.send(mine, next);
    expect_equal(theirs, numbers(previous, kCount, dtype),
                 fmt::format("a message of {}", c10::toString(dtype)));
    Tensor late = at::zeros({kCount}, mine.options());
    std::unique_ptr<Pending> sent, received;
    if (world.rank() == 0) sent = world.start(GroupedCall::send(mine, next));
    received = world.start(GroupedCall::recv(late, previous));
    if (world.rank() != 0) sent = world.start(GroupedCall::send(mine, next));
    received->wait(), sent->wait();
    expect_equal(late, numbers(previous, kCount, dtype),
                 fmt::format("a message of {} in the background", c10::toString(dtype)));
    // All ranks list what they send first.
    Tensor together = at::zeros({kCount}, mine.options()),
           everything = at::zeros({world.size() * kCount}, mine.options()), sum = mine.clone();
    const auto all =
        world.start_together({GroupedCall::send(mine, next), GroupedCall::recv(together, previous),
                              GroupedCall::all_gather(everything, mine), GroupedCall::all_reduce(sum)});
    for (const auto& one : all) one->wait();
    expect_equal(together, numbers(previous, kCount, dtype), "a message both ways");
    Tensor wanted = at::zeros({kCount}, at::kInt);
    for (int r = 0; r < world.size(); ++r) wanted.add_(numbers(r, kCount, at::kInt));
    expect_equal(sum, wanted.to(dtype), "all_reduce together with others");
    for (int r = 0; r < world.size(); ++r)
      expect_equal(everything.narrow(0, r * kCount, kCount), numbers(r, kCount, dtype),
                   "all_gather together with others");
  }
}

/// Sums that rounding tells apart have the bits of the host's sums in that order.
void check_order(Communicator& group, const std::vector<int>& ranks, const at::Device& device,
                 SumOrder order) {
  constexpr int64_t kMore = (int64_t{64} << 20) / 4 + 3;  // fp32 numbers that do not travel at once
  for (const auto& [dtype, type, count] : {std::tuple(at::kFloat, SumType::kFp32, kMore),
                                           {at::kDouble, SumType::kFp64, int64_t{7}},
                                           {at::kBFloat16, SumType::kBf16, kCount}}) {
    const auto size = static_cast<int64_t>(ranks.size()), whole = size * ((count + size - 1) / size);
    std::vector<Tensor> all;
    std::vector<const void*> rows;
    for (const int rank : ranks) {
      all.push_back(numbers(rank, whole, dtype).div_(7));
      rows.push_back(all.back().const_data_ptr());
    }
    Tensor sum = at::empty({whole}, dtype);
    sum_rows(type, sum.mutable_data_ptr(), rows.data(), static_cast<int>(size), whole, order);
    const std::string of = fmt::format(" of {} in order over {} ranks", c10::toString(dtype), size);
    const Tensor mine = all[static_cast<size_t>(group.rank())].to(device);
    Tensor some = mine.narrow(0, 0, count).clone(), behind = some.clone(), together = some.clone();
    group.all_reduce(some);
    expect_equal(some, sum.narrow(0, 0, count), "all_reduce" + of);
    const auto pending = group.start(GroupedCall::all_reduce(behind));
    pending->wait();
    expect_equal(behind, sum.narrow(0, 0, count), "start_all_reduce" + of);
    const int64_t each = whole / size;
    const Tensor own = sum.narrow(0, group.rank() * each, each);
    Tensor piece = at::zeros({each}, mine.options()), in_place = mine.clone();
    for (const auto& one :
         group.start_together({GroupedCall::all_reduce(together), GroupedCall::reduce_scatter(piece, mine)}))
      one->wait();
    expect_equal(together, sum.narrow(0, 0, count), "all_reduce together with others" + of);
    expect_equal(piece, own, "reduce_scatter together with others" + of);
    Tensor own_piece = in_place.narrow(0, group.rank() * each, each);
    group.reduce_scatter(own_piece, in_place);
    expect_equal(own_piece, own, "reduce_scatter in place" + of);
  }
}

void run(SumOrder order) {
  const c10::InferenceMode no_autograd;
  const RankInfo place = find_rank_place(process_environment());
  const at::Device device = choose_device(DeviceKind::kCuda, place.local_rank);
  const auto world = with_device(open_world(place), device, order);
  std::vector<int> everyone, half;  // in reverse
  for (int r = 0; r < world->size(); ++r) {
    everyone.push_back(r);
    if (r % 2 == world->rank() % 2) half.insert(half.begin(), r);
  }
  const auto group = world->split(world->rank() % 2, -world->rank());
  for (const at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kBFloat16, at::kInt, at::kLong, at::kByte}) {
    check_collectives(*world, everyone, device, dtype);
    check_collectives(*group, half, device, dtype);
  }
  check_messages(*world, device);
  if (order == SumOrder::kTree) {
    check_order(*world, everyone, device, order);
    check_order(*group, half, device, order);
  } else {
    const auto ring = world->split(0, world->rank());
    std::vector<std::pair<int, int>> neighbours;
    for (int r = 0; r < ring->size(); ++r) neighbours.emplace_back(r, (r + 1) % ring->size());
    ring->connect_pairs(neighbours);
    check_messages(*ring, device);
  }
  Tensor host = at::full({3}, 1, at::kFloat), gathered = at::zeros({group->size() * 3}, host.options());
  group->all_gather(gathered, host);
  expect_equal(gathered, at::full({group->size() * 3}, 1, at::kFloat), "all_gather in host memory");
  Tensor at_once = at::zeros_like(gathered);
  for (const auto& one : group->start_together({GroupedCall::all_gather(at_once, host)})) one->wait();
  expect_equal(at_once, gathered, "start_together in host memory");
  const auto expect_refused = [](const auto& call) {
    try {
      call();
      fmt::print("host memory and a GPU's went together\n"), ++num_failed;
    } catch (const Error&) {
    }
  };
  expect_refused([&] { group->all_gather(gathered, host.to(device)); });
  Tensor there = host.to(device);
  expect_refused([&] {
    group->start_together({GroupedCall::all_reduce(host), GroupedCall::all_reduce(there)});
  });
  world->check();
  world->barrier();
  fmt::print("rank {} of {}: {} failed\n", world->rank(), world->size(), num_failed);
}

}  // namespace
}  // namespace tycho

int main(int argc, char** argv) {
  try {
    const bool tree = argc > 1 && std::string(argv[1]) == "tree";
    tycho::run(tree ? tycho::SumOrder::kTree : tycho::SumOrder::kRanks);
    return tycho::num_failed == 0 ? 0 : 1;
  } catch (const tycho::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
