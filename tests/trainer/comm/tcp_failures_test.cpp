// Ranks over sockets that die or leave: every op says who, and why.
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "tests/trainer/aten.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/comm/rank_threads.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/comm/tcp.h"

namespace tycho {
namespace {

struct NamedOp {
  const char* name;
  std::function<void(Communicator&)> call;  // by the ranks that live, of three, when rank 1 has died
};
const std::vector<NamedOp>& all_ops() {
  static const std::vector<NamedOp> collectives = {
      {"all_reduce",
       [](Communicator& world) {
         Tensor x = at::ones({4});
         world.all_reduce(x);
       }},
      {"all_gather",
       [](Communicator& world) {
         Tensor x = at::ones({12});
         world.all_gather(x, at::ones({4}));
       }},
      {"start_all_gather",
       [](Communicator& world) {
         Tensor x = at::ones({12});
         world.start(GroupedCall::all_gather(x, at::ones({4})))->wait();
       }},
      {"reduce_scatter",
       [](Communicator& world) {
         Tensor x = at::ones({4});
         world.reduce_scatter(x, at::ones({12}));
       }},
      {"start_reduce_scatter",
       [](Communicator& world) {
         Tensor x = at::ones({4});
         world.start(GroupedCall::reduce_scatter(x, at::ones({12})))->wait();
       }},
      {"broadcast",
       [](Communicator& world) {
         Tensor x = at::ones({4});
         world.broadcast(x, 1);
       }},
      {"barrier", [](Communicator& world) { world.barrier(); }},
      {"send", [](Communicator& world) { world.send(at::ones({4'000'000}), 1); }},
      {"recv",
       [](Communicator& world) {
         Tensor x = at::ones({4});
         world.recv(x, 1);
       }},
      {"start_send",
       [](Communicator& world) { world.start(GroupedCall::send(at::ones({4'000'000}), 1))->wait(); }},
      {"start_recv",
       [](Communicator& world) {
         Tensor x = at::ones({4});
         world.start(GroupedCall::recv(x, 1))->wait();
       }},
      {"split", [](Communicator& world) { world.split(0, 0); }}};
  return collectives;
}

/// A rank that fails says so, as it does in a run.
void as_in_a_run(Communicator& world, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    world.abort(error);
    throw;
  }
}

/// For every op: three ranks meet, rank 1 does `last`, and the others call the op. What they end with.
std::vector<std::pair<const char*, std::vector<Ended>>> end_in_every_op(
    const std::function<void(Communicator&)>& last) {
  std::vector<std::pair<const char*, std::vector<Ended>>> all;
  for (const NamedOp& op : all_ops()) all.emplace_back(op.name, std::vector<Ended>());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] {
      all[i].second = on_ranks(
          3,
          [&](Communicator& world) {
            world.barrier();
            as_in_a_run(world, [&] { world.rank() == 1 ? last(world) : all_ops()[i].call(world); });
          },
          missed_at_once());
    });
  for (std::thread& thread : threads) thread.join();
  return all;
}

TEST(Collectives, NameARankThatDied) {
  for (const auto& [op, ended] : end_in_every_op([](Communicator&) {}))
    for (const size_t r : {size_t{0}, size_t{2}}) {
      EXPECT_EQ(ended[r].what.rfind("[parallel] rank 1 (", 0), 0U) << op << ": " << ended[r].what;
      EXPECT_EQ(ended[r].code, ExitCode::kTerminated) << op;
    }
}

TEST(Collectives, TellWhyARankLeft) {
  const auto leave = [](Communicator&) { fail(ExitCode::kUnusable, "[data] shard.00003.mds is damaged"); };
  for (const auto& [op, ended] : end_in_every_op(leave))
    for (const size_t r : {size_t{0}, size_t{2}}) {
      SCOPED_TRACE(op);
      expect_ended_by(1, "[data] shard.00003.mds is damaged", ended[r]);
      EXPECT_EQ(ended[r].code, ExitCode::kUnusable) << op;
    }
}

// Rank 3 of the world is rank 1 of its group.
TEST(Split, ADeadRankIsNamedByItsRankInTheWorldAndBreaksEveryGroup) {
  const std::vector<Ended> ended = on_ranks(4, [](Communicator& world) {
    const auto group = world.split(world.rank() % 2, world.rank());
    const auto other = world.split(world.rank() / 2, world.rank());
    if (world.rank() == 3) return;
    as_in_a_run(world, [&] {
      Tensor x = at::ones({4});
      const std::string first = error_of([&] { (world.rank() == 1 ? *group : world).all_reduce(x); });
      for (Communicator* broken : {group.get(), other.get(), &world})
        EXPECT_EQ(error_of([&] { broken->all_reduce(x); }), first);
      group->check();
    });
  });
  for (const size_t r : {size_t{0}, size_t{1}, size_t{2}}) {
    EXPECT_EQ(ended[r].what.rfind("[parallel] rank 3 (", 0), 0U) << ended[r].what;
    EXPECT_EQ(ended[r].code, ExitCode::kTerminated);
  }
}

TEST(Tcp, ARankThatDoesNotComeInTimeIsNamedWithTheVerb) {
  const std::vector<Ended> ended = on_ranks(
      3,
      [](Communicator& world) {
        if (world.rank() == 2) return std::this_thread::sleep_for(std::chrono::seconds(5));
        Tensor x = at::ones({4});
        world.all_reduce(x);
      },
      {}, /*timeout_s=*/1);
  // Which of the two reports first is open; the other repeats it.
  const std::string what = ended[0].what + ended[1].what;
  EXPECT_NE(what.find("rank 2 ("), std::string::npos) << what;
  EXPECT_NE(what.find("all_reduce: nothing came for 1 s"), std::string::npos) << what;
  for (const size_t r : {size_t{0}, size_t{1}}) EXPECT_EQ(ended[r].code, ExitCode::kTerminated);
}

TEST(Tcp, DifferentVerbsAreAnErrorThatNamesBothAndBreaksEveryGroup) {
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) {
    const auto group = world.split(0, world.rank());
    Tensor x = at::ones({4}), all = at::ones({8});
    as_in_a_run(world, [&] {
      const std::string first =
          error_of([&] { world.rank() == 0 ? group->all_reduce(x) : group->all_gather(all, x); });
      EXPECT_EQ(error_of([&] { world.barrier(); }), first);
      group->check();
    });
  });
  const std::string both =
      "[parallel] rank 0 calls all_reduce of 16 bytes (fp32) (number 0 in this group), but "
      "rank 1 calls all_gather of 16 bytes (number 0): every rank must make the same calls "
      "in the same order";
  const bool first_says_both = ended[0].what.find(both) != std::string::npos;
  EXPECT_TRUE(first_says_both || ended[1].what.find("rank 1 calls all_gather") != std::string::npos)
      << ended[0].what << "\n"
      << ended[1].what;
  for (const Ended& one : ended) EXPECT_EQ(one.code, ExitCode::kTopology) << one.what;
}

/// Three ranks do `first`, then rank 1 does `odd` and the others sum. The newest call in the file of each.
std::vector<Json> newest_calls(const std::function<void(Communicator&)>& first,
                               const std::function<void(Communicator&)>& odd) {
  const TempDir dir;
  on_ranks(3, [&](Communicator& world) {
    world.keep_collectives_in(dir / "collectives");
    as_in_a_run(world, [&] {
      first(world);
      Tensor x = at::ones({4});
      world.rank() == 1 ? odd(world) : world.all_reduce(x);
    });
  });
  std::vector<Json> calls;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string path = dir / fmt::format("collectives/rank-0000{}.json", rank);
    const Json file = parse_json(read_file(path), path);
    EXPECT_EQ(file.at("rank"), rank);
    EXPECT_EQ(file.at("num_ranks"), 3);
    EXPECT_NE(file.at("cause"), "");
    calls.push_back(file.at("calls").back());
  }
  return calls;
}

TEST(Tcp, TheFilesThatRanksLeaveSayWhoDidNotCome) {
  const std::vector<Json> calls =
      newest_calls([](Communicator& world) { world.barrier(); },
                   [](Communicator&) { fail(ExitCode::kUnusable, "[data] shard.00003.mds is damaged"); });
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_EQ(calls[rank].at("verb"), "all_reduce");
    EXPECT_EQ(calls[rank].at("number"), 1);
    EXPECT_EQ(calls[rank].at("state"), "failed");
  }
  EXPECT_EQ(calls[1].at("verb"), "barrier");
  EXPECT_EQ(calls[1].at("number"), 0);
  EXPECT_EQ(calls[1].at("state"), "done");
}

TEST(Tcp, TheFilesThatRanksLeaveSayWhoCalledAnotherVerb) {
  const std::vector<Json> calls = newest_calls([](Communicator&) {},
                                               [](Communicator& world) {
                                                 Tensor x = at::ones({2});
                                                 world.broadcast(x, 2);
                                               });
  for (const size_t rank : {size_t{0}, size_t{2}}) EXPECT_EQ(calls[rank].at("verb"), "all_reduce");
  EXPECT_EQ(calls[1].at("verb"), "broadcast");
  EXPECT_EQ(calls[1].at("peer"), 2);
  for (const Json& call : calls) {
    EXPECT_EQ(call.at("number"), 0);
    EXPECT_EQ(call.at("state"), "failed");
  }
}

TEST(Tcp, ARankThatIsStuckLeavesItsFileBeforeItsProcessIsEnded) {
  const TempDir dir;
  const std::string path = dir / "collectives/rank-00000.json";
  MeetOptions options = missed_at_once();
  options.end_s = 0.1;
  options.end_process = [](int) {};
  on_ranks(
      2,
      [&](Communicator& world) {
        world.keep_collectives_in(dir / "collectives");
        world.barrier();
        as_in_a_run(world, [&] {
          if (world.rank() == 1) fail(ExitCode::kUnusable, "[data] shard.00003.mds is damaged");
        });
        const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSoonS);
        while (!std::filesystem::exists(path) && std::chrono::steady_clock::now() < until)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
      },
      options);
  const Json file = parse_json(read_file(path), path);
  EXPECT_EQ(file.at("calls").back().at("verb"), "barrier");
  EXPECT_NE(file.at("cause").get<std::string>().find("shard.00003.mds is damaged"), std::string::npos);
}

TEST(Tcp, ARunThatLostItsFolderLeavesNoFileThere) {
  const TempDir dir;
  on_ranks(2, [&](Communicator& world) {
    world.keep_collectives_in(dir / "collectives");
    as_in_a_run(world, [&] {
      if (world.rank() == 0) fail(ExitCode::kFolderOwned, "[lock] another run has taken the folder");
      world.barrier();
    });
  });
  EXPECT_FALSE(std::filesystem::exists(dir / "collectives"));
}

TEST(Tcp, AWorldThatEndsWhileACollectiveIsUnderWayDoesNotHang) {
  on_ranks(2, [](Communicator& world) {
    Tensor x = at::ones({1'000'000});
    if (world.rank() == 0) world.start(GroupedCall::all_reduce(x));  // and nobody answers
  });
}

// A rank that computes for long is alive, and not to blame.
TEST(Split, ABusyRankOutsideOfTheBrokenGroupIsNotNamed) {
  const std::vector<Ended> ended = on_ranks(3, [](Communicator& world) {
    const auto group = world.split(world.rank() / 2, world.rank());
    group->barrier();
    if (world.rank() == 1) return;
    if (world.rank() == 2) return std::this_thread::sleep_for(std::chrono::seconds(4));
    group->barrier();
  });
  EXPECT_EQ(ended[0].what.rfind("[parallel] rank 1 (", 0), 0U) << ended[0].what;
  EXPECT_EQ(ended[0].what.find("rank 2"), std::string::npos) << ended[0].what;
}

}  // namespace
}  // namespace tycho
