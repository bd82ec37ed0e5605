// Ranks over TCP: here they are threads of one process, each with a connection of its own.
#include "trainer/parallel/gloo.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/trainer/parallel/rank_threads.h"
#include "trainer/parallel/gather_texts.h"
#include "trainer/parallel/unit_store.h"
#include "trainer/rendezvous/free_port.h"

namespace tycho {
namespace {

TEST(Gloo, SumsAndCopies) {
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

TEST(Gloo, SumsInTheBackgroundInTheOrderOfTheirStart) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    std::vector<Tensor> tensors;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < 8; ++i) tensors.push_back(at::full({100000}, world.rank() + i, at::kFloat));
    for (Tensor& tensor : tensors) pending.push_back(world.start_all_reduce(tensor));
    for (const auto& one : pending) one->wait();
    for (int i = 0; i < 8; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)][99999].item<float>(), 2 * i + 1);
  }));
}

TEST(Gloo, AGroupTellsTextsAndShowsMarks) {
  expect_all_well(at_places(3, [](const RankPlace& place) {
    const std::unique_ptr<RankGroup> group = make_gloo_group(place, /*patience_s=*/20);
    EXPECT_FALSE(group->is_marked("a"));
    const std::string mine(static_cast<size_t>(place.rank), 'x');
    EXPECT_EQ(group->gather(mine), (std::vector<std::string>{"", "x", "xx"}));
    if (place.rank == 1) group->mark("a");
    group->gather("");
    EXPECT_TRUE(group->is_marked("a"));
    EXPECT_FALSE(group->is_marked("b"));
  }));
}

TEST(Gloo, AGroupNamesARankThatHasGone) {
  const std::vector<Ended> ended = at_places(2, [](const RankPlace& place) {
    const std::unique_ptr<RankGroup> group = make_gloo_group(place, /*patience_s=*/1e8);
    group->gather("");  // both are there
    if (place.rank == 1) group->gather("");
  });
  EXPECT_EQ(ended[1].code, ExitCode::kTerminated);
  EXPECT_NE(ended[1].what.find("rank 0"), std::string::npos) << ended[1].what;
}

TEST(Gloo, AllRanksGetTheSameBits) {
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

TEST(Gloo, TextsTravel) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const std::string mine = world.rank() == 1 ? std::string(100000, 'x') : "";
    EXPECT_EQ(gather_texts(world, mine), (std::vector<std::string>{"", std::string(100000, 'x')}));
  }));
}

TEST(Gloo, WhoWaitsForARankThatLeftLearnsWhyAndWithWhichCode) {
  const std::vector<Ended> ended = on_ranks(3, [](Communicator& world) {
    Tensor x = at::ones({1000});
    world.all_reduce(x);
    if (world.rank() == 1) {
      const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
      world.leave(error);
      throw error;
    }
    try {
      world.all_reduce(x);
    } catch (const Error& error) {
      world.leave(error);
      throw;
    }
  });
  EXPECT_EQ(ended[1].what, "[data] shard.00003.mds is damaged");
  for (const size_t r : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(ended[r].what, "[parallel] rank 1 ended the run: [data] shard.00003.mds is damaged");
    EXPECT_EQ(ended[r].code, ExitCode::kUnusable);
  }
}

TEST(Gloo, RankZeroMayLeaveFirst) {
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) {
    const Error error("[storage] the disk is full", ExitCode::kStorage);
    Tensor x = at::ones({1000});
    try {
      if (world.rank() == 0) throw error;
      world.all_reduce(x);
    } catch (const Error& own) {
      world.leave(own);
      throw;
    }
  });
  EXPECT_EQ(ended[1].what, "[parallel] rank 0 ended the run: [storage] the disk is full");
  EXPECT_EQ(ended[1].code, ExitCode::kStorage);
}

TEST(Gloo, ARankThatGoesWithoutAWordIsNamed) {
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) {
    if (world.rank() == 1) return;  // as if it was killed
    Tensor x = at::ones({1000});
    world.all_reduce(x);
  });
  EXPECT_EQ(ended[0].what.rfind("[parallel] rank 1 (", 0), 0U) << ended[0].what;
  EXPECT_EQ(ended[0].code, ExitCode::kTerminated);
}

// Ranks on GPUs wait for each other in NCCL, which tells nobody: somebody else must see that one has gone.
TEST(Gloo, ARankThatGoesIsSeenWithoutACollective) {
  for (const bool says_why : {false, true}) {
    const std::vector<Ended> ended = on_ranks(2, [&](Communicator& world) {
      world.barrier();
      if (world.rank() == 1) {
        const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
        if (says_why) world.leave(error);
        return;
      }
      while (!world.is_broken()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      throw world.why_broken("it left");
    });
    const std::string begin =
        says_why ? "[parallel] rank 1 ended the run: [data] shard" : "[parallel] rank 1 (";
    EXPECT_EQ(ended[0].what.rfind(begin, 0), 0U) << ended[0].what;
    EXPECT_EQ(ended[0].code, says_why ? ExitCode::kUnusable : ExitCode::kTerminated);
  }
}

TEST(Gloo, AWatchedGroupThatIsWholeStaysSo) {
  expect_all_well(on_ranks(3, [](Communicator& world) {
    for (int i = 0; i < 20; ++i) {
      Tensor x = at::ones({1000});
      world.all_reduce(x);
      EXPECT_FALSE(world.is_broken());
    }
    world.barrier();
  }));
}

// Gloo gives every message up after the time that a collective may take.
TEST(Gloo, AWatchedGroupOutlastsTheTimeoutOfItsCollectives) {
  expect_all_well(at_places(2, [](const RankPlace& place) {
    const auto world = make_gloo_world(place, {.join_s = 20, .collective_s = 1});
    EXPECT_FALSE(world->is_broken());
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    EXPECT_FALSE(world->is_broken());
    world->barrier();
  }));
}

TEST(Gloo, RanksThatDoNotComeAreNamed) {
  const int port = free_port();
  try {
    make_gloo_world(place_of(0, 3, port), {.join_s = 0.3});
    FAIL() << "rank 0 began alone";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[parallel] 2 of 3 ranks did not arrive within 0.3 s: 1, 2");
    EXPECT_EQ(error.code(), ExitCode::kTopology);
  }
}

TEST(Gloo, ARankWithoutRankZeroSaysWhereItLooked) {
  const int port = free_port();
  try {
    make_gloo_world(place_of(1, 2, port), {.join_s = 0.5});
    FAIL() << "rank 1 began without rank 0";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind(fmt::format("[parallel] rank 1 did not find rank 0 at 127.0.0.1:{}", port), 0), 0U)
        << text;
    EXPECT_EQ(error.code(), ExitCode::kTopology);
  }
}

TEST(Gloo, APortThatIsTakenIsNamed) {
  const int port = free_port();
  make_gloo_world(place_of(0, 1, port), kSoon).reset();  // one after the other is no conflict
  const std::unique_ptr<Communicator> first = make_gloo_world(place_of(0, 1, port), kSoon);
  try {
    make_gloo_world(place_of(0, 1, port), kSoon);
    FAIL() << "two runs listened on one port";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(fmt::format("cannot listen on port {}", port)),
              std::string::npos)
        << error.what();
  }
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
