// Ranks over sockets: what they exchange, and how they end.
#include "trainer/comm/tcp.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/trainer/comm/rank_threads.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

TEST(Tcp, SumsAndCopies) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    EXPECT_EQ(world.size(), 3);
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kLong}) {
      Tensor x = at::full({5, 7}, world.rank() + 1, at::TensorOptions().dtype(dtype));
      world.all_reduce(x);
      EXPECT_TRUE(at::equal(x, at::full_like(x, 6)));
    }
    Tensor from_two = at::full({4}, world.rank(), at::TensorOptions().dtype(at::kByte));
    world.broadcast(from_two, 2);
    EXPECT_TRUE(at::equal(from_two, at::full_like(from_two, 2)));
    world.barrier();
  }));
}

TEST(Tcp, SumsInTheBackgroundInTheOrderOfTheirStart) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < 8; ++i) tensors.push_back(at::full({100000}, world.rank() + i, at::kFloat));
    for (Tensor& tensor : tensors) pending.push_back(world.start(GroupedCall::all_reduce(tensor)));
    for (const auto& one : pending) one->wait();
    for (int i = 0; i < 8; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)][99999].item<float>(), 2 * i + 1);
  }));
}

// Rank 1 can only finish its sum, and say so, when rank 0's goes on without rank 0 waiting for it.
TEST(Tcp, SumsInTheBackgroundWhileTheCallerDoesSomethingElse) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const auto other = world.split(0, world.rank());
    Tensor x = at::full({3'000'000}, world.rank() + 1, at::kFloat), said = at::zeros({1}, at::kInt);
    if (world.rank() == 1) {
      world.all_reduce(x);
      other->send(said, 0);
    } else {
      const auto pending = world.start(GroupedCall::all_reduce(x));
      other->recv(said, 1);
      pending->wait();
    }
    EXPECT_TRUE(at::equal(x, at::full_like(x, 3)));
  }));
}

TEST(Tcp, Bf16IsSummedInFp32AndRoundedOnceHoweverItIsSummed) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    // 256 + 1 + 1: adding in bf16 would stay at 256.
    for (const int64_t count : {int64_t{5}, int64_t{100'000}}) {
      const at::Tensor mine = at::full({3 * count}, world.rank() == 0 ? 256 : 1, at::kBFloat16);
      Tensor sum = mine.clone(), piece = at::zeros({count}, at::kBFloat16);
      world.all_reduce(sum);
      world.reduce_scatter(piece, mine);
      EXPECT_TRUE(at::equal(sum, at::full_like(sum, 258)));
      EXPECT_TRUE(at::equal(piece, at::full_like(piece, 258)));
    }
  }));
}

TEST(Tcp, AGroupTellsTextsAndShowsMarks) {
  expect_all_well(with_shared_peers(3, [](std::shared_ptr<Peers> peers) {
    const int rank = peers->rank();
    const std::unique_ptr<RankGroup> group = make_tcp_group(std::move(peers), /*patience_s=*/20);
    EXPECT_FALSE(group->is_marked("a"));
    const std::string mine(static_cast<size_t>(rank), 'x');
    EXPECT_EQ(group->gather(mine), (std::vector<std::string>{"", "x", "xx"}));
    if (rank == 1) group->mark("a");
    group->gather("");
    EXPECT_TRUE(group->is_marked("a"));
    EXPECT_FALSE(group->is_marked("b"));
    group->gather("");  // rank 0, which keeps the marks, stays until all have looked
  }));
}

TEST(Tcp, AGroupNamesARankThatHasGone) {
  const std::vector<Ended> ended = with_shared_peers(2, [](std::shared_ptr<Peers> peers) {
    const int rank = peers->rank();
    const std::unique_ptr<RankGroup> group = make_tcp_group(std::move(peers), /*patience_s=*/1e8);
    group->gather("");  // both are there
    if (rank == 1) group->gather("");
  });
  EXPECT_EQ(ended[1].code, ExitCode::kTerminated);
  EXPECT_NE(ended[1].what.find("rank 0"), std::string::npos) << ended[1].what;
}

TEST(Tcp, AllRanksGetTheSameBits) {
  std::vector<Tensor> sums(3);
  expect_all_well(on_ranks(3, [&](Communicator& world) {
    Tensor x = at::empty({100003}, at::kFloat);
    for (int64_t i = 0; i < x.numel(); ++i)
      x.data_ptr<float>()[i] = 1.0F / static_cast<float>(i % 1013 + 1 + world.rank() * 7);
    world.all_reduce(x);
    sums[static_cast<size_t>(world.rank())] = x;
  }));
  EXPECT_TRUE(at::equal(sums[0], sums[1]));
  EXPECT_TRUE(at::equal(sums[0], sums[2]));
}

TEST(Tcp, TextsTravel) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const std::string mine = world.rank() == 1 ? std::string(100000, 'x') : "";
    EXPECT_EQ(all_gather_strings(world, mine), (std::vector<std::string>{"", std::string(100000, 'x')}));
  }));
}

TEST(Tcp, WhoWaitsForARankThatLeftLearnsWhyAndWithWhichCode) {
  const std::vector<Ended> ended = on_ranks(3, [](Communicator& world) {
    Tensor x = at::ones({1000});
    world.all_reduce(x);
    if (world.rank() == 1) {
      const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
      world.abort(error);
      throw error;
    }
    try {
      world.all_reduce(x);
    } catch (const Error& error) {
      world.abort(error);
      throw;
    }
  });
  EXPECT_EQ(ended[1].what, "[data] shard.00003.mds is damaged");
  for (const size_t r : {size_t{0}, size_t{2}}) {
    expect_ended_by(1, "[data] shard.00003.mds is damaged", ended[r]);
    EXPECT_EQ(ended[r].code, ExitCode::kUnusable);
  }
}

TEST(Tcp, RankZeroMayLeaveFirst) {
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) {
    const Error error("[storage] the disk is full", ExitCode::kStorage);
    Tensor x = at::ones({1000});
    try {
      if (world.rank() == 0) throw error;
      world.all_reduce(x);
    } catch (const Error& own) {
      world.abort(own);
      throw;
    }
  });
  expect_ended_by(0, "[storage] the disk is full", ended[1]);
  EXPECT_EQ(ended[1].code, ExitCode::kStorage);
}

TEST(Tcp, ARankThatGoesWithoutAWordIsNamed) {
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) {
    if (world.rank() == 1) return;  // as if it was killed
    Tensor x = at::ones({1000});
    world.all_reduce(x);
  });
  EXPECT_EQ(ended[0].what.rfind("[parallel] rank 1 (", 0), 0U) << ended[0].what;
  EXPECT_EQ(ended[0].code, ExitCode::kTerminated);
}

// Ranks on GPUs wait for each other in NCCL, which tells nobody: somebody else must see that one has gone.
TEST(Tcp, ARankThatGoesIsSeenWithoutACollective) {
  for (const bool says_why : {false, true}) {
    const auto body = [&](Communicator& world) {
      world.barrier();
      if (world.rank() == 1) {
        const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
        if (says_why) world.abort(error);
        return;
      }
      while (!world.is_broken()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      throw world.why_broken("it left");
    };
    const std::vector<Ended> ended = on_ranks(2, body, missed_at_once());
    const std::string begin =
        says_why ? "[parallel] rank 1 ended the run: [data] shard" : "[parallel] rank 1 (";
    EXPECT_EQ(ended[0].what.rfind(begin, 0), 0U) << ended[0].what;
    EXPECT_EQ(ended[0].code, says_why ? ExitCode::kUnusable : ExitCode::kTerminated);
  }
}

TEST(Tcp, AWatchedGroupThatIsWholeStaysSo) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    for (int i = 0; i < 20; ++i) {
      Tensor x = at::ones({1000});
      world.all_reduce(x);
      EXPECT_FALSE(world.is_broken());
    }
    world.barrier();
  }));
}

TEST(Tcp, NotesEveryVerbWithItsGroupAndItsState) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const auto group = world.split(0, -world.rank());  // in the other order
    RecentCollectives& noted = *world.noted().calls;
    EXPECT_EQ(group->noted().calls, &noted);
    Tensor x = at::ones({4}), all = at::ones({8}, at::kBFloat16);
    const std::unique_ptr<Pending> sum = group->start(GroupedCall::all_reduce(x));
    world.all_gather(all, at::ones({4}, at::kBFloat16));
    sum->wait();
    if (world.rank() == 0)
      world.send(x, 1);
    else
      world.recv(x, 0);
    group->broadcast(x, 0);
    const Json json = noted.json(), &calls = json.at("calls");
    ASSERT_EQ(json.at("num_calls"), 5) << json.dump(1);  // with the gather by which the group was split
    EXPECT_EQ(json.at("groups").at(0).at("ranks"), Json::parse("[0, 1]"));
    EXPECT_EQ(json.at("groups").at(1).at("ranks"), Json::parse("[1, 0]"));
    const char* wanted[][2] = {{"all_gather", "int64"},
                               {"all_reduce", "fp32"},
                               {"all_gather", "bf16"},
                               {world.rank() == 0 ? "send" : "recv", "fp32"},
                               {"broadcast", "fp32"}};
    const int groups[] = {0, 1, 0, 0, 1}, bytes[] = {16, 16, 8, 16, 16};
    for (size_t i = 0; i < 5; ++i) {
      SCOPED_TRACE(calls.at(i).dump());
      EXPECT_EQ(calls.at(i).at("verb"), wanted[i][0]);
      EXPECT_EQ(calls.at(i).at("dtype"), wanted[i][1]);
      EXPECT_EQ(calls.at(i).at("group"), groups[i]);
      EXPECT_EQ(calls.at(i).at("num_bytes"), bytes[i]);
      EXPECT_EQ(calls.at(i).at("state"), "done");
    }
    EXPECT_EQ(calls.at(2).at("number"), 1) << "the second one of the world";
    EXPECT_EQ(calls.at(3).at("peer"), 1 - world.rank());
    EXPECT_EQ(calls.at(4).at("peer"), 1) << "rank 0 of the group is rank 1 of the world";
  }));
}

TEST(Together, DifferentFailuresEndWithTheCodeOfTheFirstRankThatFailed) {
  const std::vector<Ended> ended = on_ranks(3, [](Communicator& world) {
    together(world, [&] {
      if (world.rank() == 1) throw Error("[data] no shards", ExitCode::kUnusable);
      if (world.rank() == 2) throw Error("[storage] no room", ExitCode::kStorage);
    });
  });
  for (const Ended& one : ended) EXPECT_EQ(one.code, ExitCode::kUnusable) << one.what;
  EXPECT_EQ(ended[0].what, "[parallel] rank 1 ended the run: [data] no shards");
  EXPECT_EQ(ended[1].what, "[data] no shards");
  EXPECT_EQ(
      ended[2].what,
      "[parallel] rank 1 ended the run: [data] no shards\nRank 2 failed by itself, too: [storage] no room");
}

TEST(Together, TheSameFailureOnAllRanksIsSaidOnce) {
  const std::vector<Ended> ended = on_ranks(
      2, [](Communicator& world) { together(world, [] { throw Error("[check] bad", ExitCode::kRecipe); }); });
  for (const Ended& one : ended) EXPECT_EQ(one.what, "[check] bad");
}

TEST(Together, AFailureOfOneRankIsThatOfAll) {
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) {
    together(world, [] {});
    together(world, [&] {
      if (world.rank() == 1) fail(ExitCode::kUnusable, "[data] nothing is there");
    });
  });
  EXPECT_EQ(ended[0].what, "[parallel] rank 1 ended the run: [data] nothing is there");
  EXPECT_EQ(ended[0].code, ExitCode::kUnusable);
  EXPECT_EQ(ended[1].what, "[data] nothing is there");
}

}  // namespace
}  // namespace tycho
