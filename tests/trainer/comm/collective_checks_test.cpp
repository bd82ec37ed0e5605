// Errors in the arguments of a collective that one rank finds before anything is sent.
#include "trainer/comm/collective_checks.h"

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"

namespace tycho {
namespace {

// All of it is seen before anything is sent: the ranks are still in step afterwards.
TEST(Collectives, WrongTensorsAreErrorsThatSayWhatWasWanted) {
  const auto body = [](Communicator& world) {
    const int64_t n = world.size();
    Tensor out = at::zeros({n * 4 + 1}), whole = at::zeros({n * 4}), piece = at::zeros({4}), none;
    EXPECT_EQ(error_of([&] { world.all_gather(out, piece); }),
              fmt::format(
                  "[parallel] all_gather over {} ranks: expected `out` to be {} times `in` in the same dtype "
                  "and memory, got {} Float on cpu and 4 Float on cpu",
                  n, n, n * 4 + 1));
    EXPECT_NE(
        error_of([&] { world.start(GroupedCall::reduce_scatter(piece, out)); }).find("expected `in` to be"),
        std::string::npos);
    Tensor other = at::zeros({4}, at::kDouble);
    EXPECT_NE(error_of([&] { world.all_gather(whole, other); }).find("in the same dtype"), std::string::npos);
    EXPECT_NE(error_of([&] { world.reduce_scatter(other, whole); }).find("in the same dtype"),
              std::string::npos);
    Tensor flags = at::zeros({n}, at::kBool), flag = at::zeros({1}, at::kBool);
    EXPECT_EQ(error_of([&] { world.reduce_scatter(flag, flags); }),
              "[parallel] reduce_scatter: expected fp32, fp64, bf16, int32, int64 or uint8, got Bool");
    EXPECT_EQ(error_of([&] { world.all_reduce(flag); }),
              "[parallel] all_reduce: expected fp32, fp64, bf16, int32, int64 or uint8, got Bool");
    Tensor columns = at::zeros({n * 4, 2}).select(1, 0);
    EXPECT_EQ(error_of([&] { world.all_gather(columns, piece); }),
              "[parallel] all_gather: expected a contiguous tensor; copy it with contiguous()");
    EXPECT_NE(error_of([&] { world.all_reduce(columns); }).find("all_reduce: expected a contiguous"),
              std::string::npos);
    EXPECT_EQ(error_of([&] { world.all_gather(whole, none); }),
              "[parallel] all_gather: expected a tensor, got none");
    Tensor misplaced = at::zeros({n * 4 + 4});
    const Tensor large = misplaced.narrow(0, 0, n * 4), late = misplaced.narrow(0, n * 4 - 2, 4);
    Tensor large_out = large;
    EXPECT_NE(error_of([&] { world.all_gather(large_out, late); }).find("overlap"), std::string::npos);
    EXPECT_NE(
        error_of([&] { world.broadcast(piece, static_cast<int>(n)); }).find("expected a root from 0 to"),
        std::string::npos);
    Tensor ones = at::ones({3});
    world.all_reduce(ones);
    EXPECT_TRUE(at::equal(ones, at::full_like(ones, static_cast<double>(n))));
  };
  body(*make_world_of_one());
  expect_all_well(on_ranks(3, body));
}

TEST(Messages, NeedAnotherRank) {
  const auto alone = make_world_of_one();
  Tensor x = at::zeros({3});
  EXPECT_EQ(error_of([&] { alone->send(x, 0); }),
            "[parallel] send: expected another rank, got 0, which is this one; the group has no other");
  EXPECT_EQ(error_of([&] { alone->recv(x, 1); }), "[parallel] recv: expected a rank from 0 to 0, got 1");
  expect_all_well(on_ranks(2, [](Communicator& world) {
    Tensor x = at::zeros({3}), columns = at::zeros({3, 2}).select(1, 0);
    EXPECT_EQ(error_of([&] { world.send(x, world.rank()); }),
              fmt::format("[parallel] send: expected another rank, got {}, which is this one", world.rank()));
    EXPECT_EQ(error_of([&] { world.recv(x, -1); }), "[parallel] recv: expected a rank from 0 to 1, got -1");
    EXPECT_EQ(error_of([&] { world.send(columns, 1 - world.rank()); }),
              "[parallel] send: expected a contiguous tensor; copy it with contiguous()");
    world.barrier();
  }));
}

}  // namespace
}  // namespace tycho
