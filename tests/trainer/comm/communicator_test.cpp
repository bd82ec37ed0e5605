// Every op of a communicator against plain loops: alone, over threads, and over sockets with one to
// four ranks.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "tests/trainer/comm/thread_world.h"

namespace tycho {
namespace {

constexpr at::ScalarType kSummed[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kInt, at::kLong, at::kByte};

/// The number of a rank at a place: whole, and small enough that four of them fit a byte.
int number(int rank, int64_t i) { return static_cast<int>((rank * 37 + i * 11) % 61); }

/// Those of a rank; fractions where the dtype has any, so that sums round.
template <class T>
std::vector<T> numbers(int rank, int64_t count) {
  std::vector<T> all;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      all.push_back(static_cast<T>(number(rank, i)));
    } else {
      all.push_back(static_cast<T>(static_cast<float>(number(rank, i) - 30) / 7.0F));
    }
  }
  return all;
}

template <class T>
Tensor tensor_of(const std::vector<T>& numbers, at::ScalarType dtype) {
  Tensor x = at::empty({static_cast<int64_t>(numbers.size())}, at::TensorOptions().dtype(dtype));
  std::copy(numbers.begin(), numbers.end(), static_cast<T*>(x.data_ptr()));
  return x;
}

/// Calls test(T()) for the C++ type of a dtype.
template <class Test>
void with_type(at::ScalarType dtype, const Test& test) {
  switch (dtype) {
    case at::kFloat: return test(float());
    case at::kDouble: return test(double());
    case at::kBFloat16: return test(c10::BFloat16());
    case at::kInt: return test(int32_t());
    case at::kLong: return test(int64_t());
    case at::kByte: return test(uint8_t());
    default: FAIL() << c10::toString(dtype);
  }
}

/// Runs `body` in every kind of group: one rank alone, threads, and one to four ranks over sockets.
void in_every_group(const std::function<void(Communicator&)>& body) {
  body(*make_world_of_one());
  ThreadWorld(3).run(body);
  for (const int size : {1, 2, 3, 4}) expect_all_well(on_ranks(size, body));
}

template <class T>
void gather_and_compare(Communicator& world, at::ScalarType dtype, int64_t count) {
  std::vector<T> expected;
  for (int r = 0; r < world.size(); ++r)
    for (const T& x : numbers<T>(r, count)) expected.push_back(x);
  const Tensor wanted = tensor_of(expected, dtype), mine = tensor_of(numbers<T>(world.rank(), count), dtype);
  Tensor out = at::zeros({world.size(), count}, mine.options());
  world.all_gather(out, mine);
  EXPECT_TRUE(at::equal(out.view(-1), wanted)) << c10::toString(dtype);
  Tensor in_place = at::zeros({world.size(), count}, mine.options());
  in_place[world.rank()].copy_(mine);
  world.all_gather(in_place, in_place[world.rank()]);
  EXPECT_TRUE(at::equal(in_place.view(-1), wanted)) << c10::toString(dtype);
  Tensor later = at::zeros({world.size() * count}, mine.options());
  world.start(GroupedCall::all_gather(later, mine))->wait();
  EXPECT_TRUE(at::equal(later, wanted)) << c10::toString(dtype);
}

TEST(AllGather, HasThePiecesOfAllRanksInTheirOrder) {
  in_every_group([](Communicator& world) {
    for (const at::ScalarType dtype : kSummed)
      with_type(dtype, [&](auto type) { gather_and_compare<decltype(type)>(world, dtype, 1003); });
  });
}

TEST(AllGather, CopiesDtypesThatCannotBeSummed) {
  in_every_group([](Communicator& world) {
    for (const at::ScalarType dtype : {at::kBool, at::kHalf}) {
      const Tensor mine = at::full({2, 3}, world.rank() % 2, at::TensorOptions().dtype(dtype));
      Tensor out = at::zeros({world.size(), 2, 3}, mine.options());
      world.all_gather(out, mine);
      for (int r = 0; r < world.size(); ++r) EXPECT_TRUE(at::equal(out[r], at::full_like(mine, r % 2)));
    }
  });
}

/// The sum of all ranks' numbers in the order of ranks; bf16 in fp32.
template <class T>
std::vector<T> summed(int num_ranks, int64_t count) {
  using Sum = std::conditional_t<std::is_same_v<T, c10::BFloat16>, float, T>;
  std::vector<Sum> sum(static_cast<size_t>(count));
  for (int r = 0; r < num_ranks; ++r) {
    const std::vector<T> theirs = numbers<T>(r, count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<Sum>(sum[i] + static_cast<Sum>(theirs[i]));
  }
  return {sum.begin(), sum.end()};
}

template <class T>
void scatter_and_compare(Communicator& world, at::ScalarType dtype, int64_t count) {
  const int64_t all = world.size() * count;
  const Tensor mine = tensor_of(numbers<T>(world.rank(), all), dtype);
  const Tensor wanted =
      tensor_of(summed<T>(world.size(), all), dtype).view({world.size(), count})[world.rank()];
  Tensor out = at::zeros({count}, mine.options());
  world.reduce_scatter(out, mine);
  EXPECT_TRUE(at::equal(out, wanted)) << c10::toString(dtype);
  Tensor in_place = mine.clone().view({world.size(), count}), piece = in_place[world.rank()];
  world.reduce_scatter(piece, in_place);
  EXPECT_TRUE(at::equal(piece, wanted)) << c10::toString(dtype);
  Tensor later = at::zeros({count}, mine.options());
  world.start(GroupedCall::reduce_scatter(later, mine))->wait();
  EXPECT_TRUE(at::equal(later, wanted)) << c10::toString(dtype);
}

TEST(ReduceScatter, LeavesEachRankItsPieceOfTheSum) {
  const auto body = [](Communicator& world) {
    for (const at::ScalarType dtype : kSummed)
      with_type(dtype, [&](auto type) { scatter_and_compare<decltype(type)>(world, dtype, 517); });
  };
  body(*make_world_of_one());
  for (const int size : {1, 2, 3, 4}) expect_all_well(on_ranks(size, body));
}

TEST(ReduceScatter, IsTheRanksPieceOfAllReduce) {
  in_every_group([](Communicator& world) {
    const Tensor mine = tensor_of(numbers<int64_t>(world.rank(), 12 * world.size()), at::kLong);
    Tensor whole = mine.clone(), piece = at::zeros({12}, mine.options());
    world.all_reduce(whole);
    world.reduce_scatter(piece, mine);
    EXPECT_TRUE(at::equal(piece, whole.view({world.size(), 12})[world.rank()]));
  });
}

TEST(Collectives, RunInTheBackgroundAndAreAwaitedInAnyOrder) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    constexpr int kRounds = 6;
    std::vector<Tensor> gathered, scattered, summed;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < kRounds; ++i) {
      gathered.push_back(at::zeros({3, 20000}, at::kFloat));
      scattered.push_back(at::zeros({20000}, at::kFloat));
      summed.push_back(at::full({20000}, world.rank() + i, at::kFloat));
    }
    for (size_t i = 0; i < kRounds; ++i) {
      const auto number = static_cast<double>(world.rank() + static_cast<int>(i));
      pending.push_back(
          world.start(GroupedCall::all_gather(gathered[i], at::full({20000}, number, at::kFloat))));
      pending.push_back(
          world.start(GroupedCall::reduce_scatter(scattered[i], at::full({60000}, number, at::kFloat))));
      pending.push_back(world.start(GroupedCall::all_reduce(summed[i])));
    }
    for (size_t i = pending.size(); i-- > 0;) pending[i]->wait();
    for (size_t i = 0; i < kRounds; ++i) {
      const float sum = 3 * static_cast<float>(i) + 3;
      EXPECT_EQ(gathered[i][2][19999].item<float>(), static_cast<float>(i) + 2);
      EXPECT_TRUE(at::equal(scattered[i], at::full_like(scattered[i], sum)));
      EXPECT_TRUE(at::equal(summed[i], at::full_like(summed[i], sum)));
    }
  }));
}

TEST(Collectives, EmptyPiecesAreDoneAtOnce) {
  in_every_group([](Communicator& world) {
    const Tensor none = at::empty({0, 3}, at::kFloat);
    Tensor out = at::empty({world.size(), 0, 3}, at::kFloat), piece = at::empty({0}, at::kFloat);
    world.all_gather(out, none);
    world.start(GroupedCall::reduce_scatter(piece, none))->wait();
    world.barrier();
  });
  expect_all_well(on_ranks(2, [](Communicator& world) {
    Tensor none = at::empty({0}, at::kFloat), one = at::full({1}, 5, at::kFloat);
    if (world.rank() == 0) world.send(none, 1), world.send(one, 1);
    if (world.rank() == 1) {
      one.zero_();
      world.recv(none, 0), world.recv(one, 0);
    }
    EXPECT_EQ(one.item<float>(), 5);
  }));
}

TEST(Messages, GoFromOneRankToAnotherWhileOthersDoSomethingElse) {
  expect_all_well(on_ranks(4, [](Communicator& world) {
    for (const at::ScalarType dtype : kSummed) {
      Tensor x = at::full({1000003}, world.rank() == 1 ? 7 : 0, at::TensorOptions().dtype(dtype));
      if (world.rank() == 1) world.send(x, 3);
      if (world.rank() == 3) world.recv(x, 1);
      EXPECT_TRUE(at::equal(x, at::full_like(x, world.rank() % 2 == 1 ? 7 : 0)));
    }
    world.barrier();
  }));
}

TEST(Messages, ArriveInTheOrderInWhichTheyWereSent) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    // Around a ring: each rank has what its predecessors sent, in their order.
    const int next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
    for (int i = 0; i < 20; ++i) {
      Tensor out = at::full({i + 1}, world.rank() * 100 + i, at::kInt), in = at::zeros({i + 1}, at::kInt);
      if (world.rank() == 0)
        world.send(out, next), world.recv(in, previous);
      else
        world.recv(in, previous), world.send(out, next);
      EXPECT_TRUE(at::equal(in, at::full_like(in, previous * 100 + i)));
    }
  }));
}

TEST(Messages, RunInTheBackgroundInBothDirectionsAtOnce) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    // More than sockets buffer: sends that wait for their receiver would wait for one another here.
    constexpr int64_t kLarge = 1'500'000, kRounds = 3;
    const int next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
    std::vector<std::unique_ptr<Pending>> pending;
    std::vector<Tensor> received;
    for (int i = 0; i < kRounds; ++i) {
      const Tensor sent = at::full({kLarge}, world.rank() * 100 + i, at::kInt);
      for (const int to : {next, previous}) pending.push_back(world.start(GroupedCall::send(sent, to)));
    }
    for (int i = 0; i < kRounds; ++i)
      for (const int from : {next, previous}) {
        received.push_back(at::zeros({kLarge}, at::kInt));
        pending.push_back(world.start(GroupedCall::recv(received.back(), from)));
      }
    for (size_t i = pending.size(); i-- > 0;) pending[i]->wait();
    for (int i = 0; i < 2 * kRounds; ++i) {
      const int from = i % 2 == 0 ? next : previous;
      const Tensor& x = received[static_cast<size_t>(i)];
      EXPECT_TRUE(at::equal(x, at::full_like(x, from * 100 + i / 2)));
    }
  }));
}

// More than sockets buffer, both ways: where one of them waited for the other, this would not end.
TEST(StartTogether, MessagesBothWaysAndCollectivesDoNotWaitForOneAnother) {
  for (const bool sends_first : {true, false})
    in_every_group([&](Communicator& group) {
      constexpr int64_t kLarge = 1'500'000;
      const int size = group.size(), next = (group.rank() + 1) % size,
                previous = (group.rank() + size - 1) % size;
      const Tensor sent = at::full({kLarge}, group.rank(), at::kInt),
                   piece = at::full({5}, group.rank(), at::kInt);
      Tensor received = at::full({kLarge}, -1, at::kInt), pieces = at::zeros({5 * size}, at::kInt),
             sum = at::full({3}, group.rank() + 1, at::kInt), part = at::zeros({2}, at::kInt);
      const Tensor parts = at::full({2 * size}, group.rank(), at::kInt);
      std::vector<GroupedCall> calls = {GroupedCall::all_gather(pieces, piece), GroupedCall::all_reduce(sum),
                                        GroupedCall::reduce_scatter(part, parts)};
      if (size > 1) {
        const GroupedCall out = GroupedCall::send(sent, next), in = GroupedCall::recv(received, previous);
        calls.insert(calls.begin(), {sends_first ? out : in, sends_first ? in : out});
      }
      const auto pending = group.start_together(calls);
      ASSERT_EQ(pending.size(), calls.size());
      for (size_t i = pending.size(); i-- > 0;) pending[i]->wait();
      if (size > 1) {
        EXPECT_TRUE(at::equal(received, at::full_like(received, previous)));
      }
      for (int r = 0; r < size; ++r)
        EXPECT_TRUE(at::equal(pieces.narrow(0, 5 * r, 5), at::full({5}, r, at::kInt)));
      EXPECT_TRUE(at::equal(sum, at::full({3}, size * (size + 1) / 2, at::kInt)));
      EXPECT_TRUE(at::equal(part, at::full({2}, size * (size - 1) / 2, at::kInt)));
    });
}

TEST(Messages, ArriveInTheirOrderInTheBackgroundAndOutsideOfIt) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    std::vector<Tensor> x;
    for (int i = 0; i < 4; ++i) x.push_back(at::full({300'000}, world.rank() == 0 ? i : -1, at::kInt));
    if (world.rank() == 0) {
      const auto first = world.start(GroupedCall::send(x[0], 1));
      world.send(x[1], 1);
      const auto third = world.start(GroupedCall::send(x[2], 1));
      world.send(x[3], 1);
      third->wait(), first->wait();
    } else {
      world.recv(x[0], 0);
      const auto second = world.start(GroupedCall::recv(x[1], 0)),
                 third = world.start(GroupedCall::recv(x[2], 0));
      world.recv(x[3], 0);
      third->wait(), second->wait();
    }
    for (int i = 0; i < 4; ++i)
      EXPECT_TRUE(at::equal(x[static_cast<size_t>(i)], at::full({300'000}, i, at::kInt))) << i;
    Tensor none = at::empty({0}, at::kFloat);
    const int other = 1 - world.rank();
    const auto sent = world.start(GroupedCall::send(none, other));
    world.start(GroupedCall::recv(none, other))->wait(), sent->wait();
  }));
}

/// Of a group: its size, this rank in it, and the sum of all ranks' `mine`.
std::vector<int64_t> seen(Communicator& group, int64_t mine) {
  Tensor sum = at::full({1}, mine, at::kLong);
  group.all_reduce(sum);
  return {group.size(), group.rank(), sum.item<int64_t>()};
}

void split_in_halves(Communicator& world) {
  const int rank = world.rank(), colour = rank % 2;
  int64_t sum = 0, size = 0;
  for (int r = colour; r < world.size(); r += 2) sum += r, ++size;
  const auto group = world.split(colour, rank);
  EXPECT_EQ(seen(*group, rank), (std::vector<int64_t>{size, rank / 2, sum}));
  const auto reversed = world.split(colour, -rank);
  EXPECT_EQ(seen(*reversed, rank), (std::vector<int64_t>{size, size - 1 - rank / 2, sum}));
  const auto same_key = world.split(colour, 5);
  EXPECT_EQ(same_key->rank(), rank / 2);
  EXPECT_EQ(seen(world, 1)[2], world.size());  // which goes on
}

TEST(Split, MakesGroupsOfEqualColourOrderedByKey) { in_every_group(split_in_halves); }

TEST(Split, GroupsAreSplitFurtherAndOutliveWhatTheyCameFrom) {
  expect_all_well(with_shared_peers(4, [](std::shared_ptr<Peers> peers) {
    const int rank = peers->rank();
    auto world = make_tcp_world(std::move(peers), kSoonS);
    auto half = world->split(rank / 2, rank);
    auto own = half->split(rank, 0);
    auto all = world->split(0, -rank);
    world.reset();
    EXPECT_EQ(seen(*half, rank)[2], rank < 2 ? 1 : 5);
    EXPECT_EQ(seen(*own, rank), (std::vector<int64_t>{1, 0, rank}));
    EXPECT_EQ(seen(*all, rank), (std::vector<int64_t>{4, 3 - rank, 6}));
    all->barrier();
  }));
}

TEST(Split, GroupsWorkAtTheSameTime) {
  expect_all_well(on_ranks(4, [](Communicator& world) {
    const auto row = world.split(world.rank() / 2, world.rank()),
               column = world.split(world.rank() % 2, world.rank());
    for (int i = 0; i < 10; ++i) {
      Tensor a = at::full({3000}, world.rank(), at::kFloat), b = a.clone(), gathered = at::zeros({2, 3000});
      const auto first = row->start(GroupedCall::all_reduce(a));
      const auto second = column->start(GroupedCall::all_reduce(b));
      const auto third =
          row->start(GroupedCall::all_gather(gathered, at::full({3000}, world.rank(), at::kFloat)));
      third->wait(), second->wait(), first->wait();
      EXPECT_EQ(a[0].item<float>(), world.rank() < 2 ? 1 : 5);
      EXPECT_EQ(b[0].item<float>(), world.rank() % 2 == 0 ? 2 : 4);
      EXPECT_EQ(gathered[1][0].item<int>(), world.rank() / 2 * 2 + 1);
    }
  }));
}

TEST(Split, MessagesGoToRanksOfTheGroup) {
  expect_all_well(on_ranks(4, [](Communicator& world) {
    const auto group = world.split(world.rank() % 2, -world.rank());  // {2, 0} and {3, 1}
    Tensor x = at::full({5}, world.rank(), at::kInt);
    if (group->rank() == 0) group->send(x, 1);
    if (group->rank() == 1) group->recv(x, 0);
    EXPECT_EQ(x[4].item<int>(), world.rank() % 2 + 2);
  }));
}

}  // namespace
}  // namespace tycho
