// Ranks that meet: here they are threads, each with a monitor and a listener of its own.
#include "trainer/rendezvous/meet/rendezvous.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <latch>
#include <thread>

#include "tests/trainer/rendezvous/rank_threads.h"
#include "trainer/rendezvous/endpoint.h"

namespace tycho {
namespace {

using namespace std::chrono_literals;

bool says(const Ended& ended, const std::string& part) { return ended.what.find(part) != std::string::npos; }

TEST(Rendezvous, EveryPairOfRanksGetsAConnection) {
  expect_all_well(with_peers(4, [](Peers& peers) {
    const std::vector<int> ranks = {3, 0, 1, 2};
    for (int round = 0; round < 3; ++round) {
      std::vector<Socket> sockets = peers.connect("round " + std::to_string(round), ranks);
      for (size_t i = 0; i < ranks.size(); ++i) {
        EXPECT_EQ(sockets[i].is_open(), ranks[i] != peers.rank());
        const char mine = static_cast<char>('0' + 10 * round + peers.rank());
        if (!sockets[i].is_open()) continue;
        EXPECT_EQ(send(sockets[i].fd(), &mine, 1, 0), 1);
      }
      for (size_t i = 0; i < ranks.size(); ++i) {
        char theirs = 0;
        if (!sockets[i].is_open()) continue;
        EXPECT_EQ(recv(sockets[i].fd(), &theirs, 1, 0), 1);
        EXPECT_EQ(theirs, '0' + 10 * round + ranks[i]);
      }
    }
  }));
}

TEST(Rendezvous, SomeRanksConnectWithoutTheOthers) {
  expect_all_well(with_peers(3, [](Peers& peers) {
    if (peers.rank() == 0) return std::this_thread::sleep_for(200ms);
    const std::vector<Socket> sockets = peers.connect("pair", {1, 2});
    EXPECT_EQ(sockets[0].is_open(), peers.rank() == 2);
    EXPECT_EQ(sockets[1].is_open(), peers.rank() == 1);
  }));
}

TEST(Rendezvous, MarksAreSeenByAll) {
  expect_all_well(with_peers(3, [](Peers& peers) {
    EXPECT_FALSE(peers.is_marked("b"));
    if (peers.rank() == 1) peers.mark("a");
    // To connect is no barrier: rank 1 says when it has set the mark.
    const std::vector<Socket> sockets = peers.connect("after the mark", {0, 1, 2});
    for (const int other : {0, 2}) {
      char word = 'm';
      if (peers.rank() == 1) {
        EXPECT_EQ(send(sockets[static_cast<size_t>(other)].fd(), &word, 1, 0), 1);
      } else if (peers.rank() == other) {
        EXPECT_EQ(recv(sockets[1].fd(), &word, 1, 0), 1);
      }
    }
    EXPECT_TRUE(peers.is_marked("a"));
    EXPECT_FALSE(peers.is_marked("b"));
    // Rank 0, which keeps the marks, goes last.
    for (const Socket& socket : peers.connect("end", {0, 1, 2})) {
      char word = 'e';
      if (peers.rank() == 0 && socket.is_open()) {
        EXPECT_EQ(recv(socket.fd(), &word, 1, 0), 1);
      } else if (peers.rank() != 0 && socket.is_open()) {
        EXPECT_EQ(send(socket.fd(), &word, 1, MSG_NOSIGNAL), 1);
      }
    }
  }));
}

TEST(Rendezvous, ARankThatLeavesIsQuotedByAllWithItsCode) {
  for (const int culprit : {0, 1}) {
    const std::vector<Ended> ended = with_peers(3, [&](Peers& peers) {
      if (peers.rank() == culprit) {
        const Error error("[data] shard.00003.mds is damaged", ExitCode::kUnusable);
        peers.abort(error);
        throw error;
      }
      pollfd file = {peers.broken_fd(), POLLIN, 0};
      EXPECT_EQ(poll(&file, 1, 5000), 1);
      EXPECT_TRUE(peers.is_broken());
      const Error error = peers.why_broken("it left", {culprit});
      peers.abort(error);
      throw error;
    });
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(ended[r].code, ExitCode::kUnusable);
      if (r == culprit) continue;
      EXPECT_TRUE(
          says(ended[r],
               fmt::format("[parallel] rank {} ended the run: [data] shard.00003.mds is damaged (", culprit)))
          << ended[r].what;
      EXPECT_TRUE(says(ended[r], fmt::format("pid {}", getpid()))) << ended[r].what;
    }
  }
}

TEST(Rendezvous, TheFirstReasonStays) {
  const std::vector<Ended> ended = with_peers(3, [](Peers& peers) {
    if (peers.rank() == 1) return peers.abort(Error("the first", ExitCode::kStorage));
    while (!peers.is_broken()) std::this_thread::sleep_for(1ms);
    peers.abort(Error("a later one", ExitCode::kNumerics));
    throw peers.why_broken("", {});
  });
  for (const int r : {0, 2}) {
    EXPECT_TRUE(says(ended[r], "rank 1 ended the run: the first")) << ended[r].what;
    EXPECT_EQ(ended[r].code, ExitCode::kStorage);
  }
}

TEST(Rendezvous, RanksThatFailAtOnceEndWithOneCodeAndSayBoth) {
  for (const int first : {0, 2}) {
    const std::vector<Ended> ended = with_peers(3, [&](Peers& peers) {
      const Error own(fmt::format("[own] words of rank {}", peers.rank()),
                      peers.rank() == first ? ExitCode::kUnusable : ExitCode::kStorage);
      while (peers.rank() != first && !peers.is_broken()) std::this_thread::sleep_for(1ms);
      throw peers.abort(own);
    });
    EXPECT_EQ(ended[first].what, fmt::format("[own] words of rank {}", first));
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(ended[r].code, ExitCode::kUnusable);
      if (r == first) continue;
      EXPECT_TRUE(
          says(ended[r], fmt::format("[parallel] rank {0} ended the run: [own] words of rank {0} (", first)))
          << ended[r].what;
      EXPECT_TRUE(says(ended[r], fmt::format("\nRank {0} failed by itself, too: [own] words of rank {0}", r)))
          << ended[r].what;
    }
  }
}

TEST(Rendezvous, RanksThatFailAtTheSameMomentAgree) {
  for (int round = 0; round < 20; ++round) {
    const std::vector<Ended> ended = with_peers(3, [&](Peers& peers) {
      throw peers.abort(
          Error(fmt::format("[own] {}", peers.rank()), static_cast<ExitCode>(10 + peers.rank())));
    });
    for (const Ended& one : ended) EXPECT_EQ(one.code, ended[0].code) << one.what;
    const int cause = static_cast<int>(ended[0].code) - 10;
    for (const Ended& one : ended) EXPECT_TRUE(says(one, fmt::format("[own] {}", cause))) << one.what;
  }
}

TEST(Rendezvous, ARankThatRepeatsTheCauseSaysItOnce) {
  const std::vector<Ended> ended = with_peers(2, [](Peers& peers) {
    if (peers.rank() == 1) throw peers.abort(Error("the first", ExitCode::kStorage));
    while (!peers.is_broken()) std::this_thread::sleep_for(1ms);
    throw peers.abort(Error(std::string("in a callback: ") + peers.why_broken("", {}).what()));
  });
  EXPECT_TRUE(ended[0].what.starts_with("in a callback: [parallel] rank 1 ended the run: the first ("))
      << ended[0].what;
  EXPECT_FALSE(says(ended[0], "failed by itself")) << ended[0].what;
  EXPECT_EQ(ended[0].code, ExitCode::kStorage);
}

TEST(Rendezvous, ARankThatEndedWellIsNamedWhenOthersNeedItAndMissedAfterAWhile) {
  MeetOptions options;
  options.goodbye_s = 0.3;
  options.beat_s = 0.1;
  const std::vector<Ended> ended = with_peers(
      3,
      [](Peers& peers) {
        if (peers.rank() == 1) return;
        if (peers.rank() == 0) {
          while (!peers.is_broken()) std::this_thread::sleep_for(1ms);
        }
        throw peers.why_broken("its connection closed", {1});
      },
      options);
  for (const int r : {0, 2}) {
    EXPECT_EQ(ended[r].code, ExitCode::kTerminated);
    EXPECT_TRUE(says(ended[r], "[parallel] rank 1 (")) << ended[r].what;
    EXPECT_TRUE(says(ended[r], "has ended")) << ended[r].what;
  }
}

TEST(Rendezvous, RanksMayEndOneAfterTheOther) {
  for (const int last : {0, 2})
    expect_all_well(with_peers(3, [&](Peers& peers) {
      if (peers.rank() != last) return;
      std::this_thread::sleep_for(300ms);
      EXPECT_FALSE(peers.is_broken());
    }));
}

TEST(Rendezvous, ASuspectThatSaysNothingIsNamedWithWhatWasNoticed) {
  const std::vector<Ended> ended = with_peers(3, [](Peers& peers) {
    if (peers.rank() != 2) {
      while (!peers.is_broken()) std::this_thread::sleep_for(1ms);
      throw peers.why_broken("", {});
    }
    throw peers.why_broken("it did not come to all_reduce within 1800 s\nmore", {1});
  });
  for (const Ended& one : ended) {
    EXPECT_TRUE(says(one, "[parallel] rank 1 (")) << one.what;
    EXPECT_TRUE(says(one, "it did not come to all_reduce within 1800 s. The same command resumes"))
        << one.what;
    EXPECT_EQ(one.code, ExitCode::kTerminated);
  }
}

TEST(Rendezvous, RanksThatDoNotComeAreNamedToThoseWhoDid) {
  MeetOptions options;
  options.join_s = 2;
  const std::vector<Ended> ended = at_places(4, [&](const RankInfo& place) {
    if (place.rank == 0 || place.rank == 2) rendezvous(place, options);
  });
  EXPECT_EQ(ended[0].what, "[parallel] 2 of 4 ranks did not arrive within 2 s: 1, 3");
  EXPECT_TRUE(says(ended[2], "2 of 4 ranks did not arrive within 2 s: 1, 3")) << ended[2].what;
  EXPECT_EQ(ended[0].code, ExitCode::kTopology);
  EXPECT_EQ(ended[2].code, ExitCode::kTopology);
}

TEST(Rendezvous, ARankThatDoesNotFindRankZeroSaysWhere) {
  MeetOptions options;
  options.join_s = 0.3;
  const std::vector<Ended> ended = at_places(2, [&](const RankInfo& place) {
    if (place.rank == 1) rendezvous(place, options);
  });
  EXPECT_TRUE(says(ended[1], "[parallel] rank 1 did not find rank 0 at 127.0.0.1:")) << ended[1].what;
  EXPECT_TRUE(says(ended[1], "(a test) within 0.3 s: Connection refused")) << ended[1].what;
  EXPECT_EQ(ended[1].code, ExitCode::kTopology);
}

TEST(Rendezvous, AStopEndsTheWaitOnAllRanksWithItsCode) {
  for (const int stopped : {0, 1}) {
    std::atomic<int> stop = 0;
    const std::vector<Ended> ended = at_places(3, [&](const RankInfo& place) {
      if (place.rank == 2) {
        std::this_thread::sleep_for(1500ms);  // the others have found each other
        stop = SIGUSR1;
        return;
      }
      MeetOptions options;
      if (place.rank == stopped) options.stop = &stop;
      rendezvous(place, options);
    });
    const int other = 1 - stopped;
    EXPECT_TRUE(says(ended[stopped],
                     fmt::format("[ranks] stopped by SIGUSR1 while rank {} was waiting for ", stopped)))
        << ended[stopped].what;
    EXPECT_TRUE(says(ended[other], fmt::format("rank {} ended the run: [ranks] stopped by SIGUSR1", stopped)))
        << ended[other].what;
    for (const int r : {0, 1}) EXPECT_EQ(ended[r].code, ExitCode::kPreempted);
  }
}

TEST(Rendezvous, AStopEndsTheSearchForRankZero) {
  const std::atomic<int> stop = SIGTERM;
  const std::vector<Ended> ended = at_places(2, [&](const RankInfo& place) {
    MeetOptions options;
    options.stop = &stop;
    if (place.rank == 1) rendezvous(place, options);
  });
  EXPECT_TRUE(says(ended[1], "[ranks] stopped by SIGTERM while rank 1 was waiting for rank 0"))
      << ended[1].what;
  EXPECT_EQ(ended[1].code, ExitCode::kTerminated);
}

/// Counts a latch down when its scope ends, by an error too.
struct CountDown {
  explicit CountDown(std::latch& latch) : latch_(latch) {}
  ~CountDown() { latch_.count_down(); }
  std::latch& latch_;
};

TEST(Rendezvous, ASecondProcessOfTheSameRankIsTurnedAway) {
  std::latch turned_away(1);
  const std::vector<Ended> ended = at_places(4, [&](const RankInfo& place) {
    RankInfo mine = place;
    mine.num_ranks = mine.num_local_ranks = 3;
    if (place.rank == 3) {
      mine.rank = mine.local_rank = 1;
      std::this_thread::sleep_for(1500ms);  // rank 1 is there
      const CountDown at_end(turned_away);
      rendezvous(mine);
      return;
    }
    if (place.rank == 2) turned_away.wait();
    const auto peers = rendezvous(mine);
    peers->connect("all", {0, 1, 2});
  });
  EXPECT_TRUE(says(ended[3], "[ranks] rank 1 of this run is already there: rank 1 (")) << ended[3].what;
  EXPECT_EQ(ended[3].code, ExitCode::kTopology);
  for (const int r : {0, 1, 2}) EXPECT_EQ(ended[r].what, "");
}

TEST(Rendezvous, ARankThatMeetsAgainWaitsUntilRankZeroHasLeft) {
  const std::vector<Ended> ended = at_places(2, [&](const RankInfo& place) {
    {
      const auto peers = rendezvous(place);
      if (place.rank == 0) std::this_thread::sleep_for(500ms);  // rank 1 comes again meanwhile
    }
    rendezvous(place);
  });
  for (const Ended& one : ended) EXPECT_EQ(one.what, "");
}

TEST(Rendezvous, RanksThatWereToldOfDifferentNumbersEndAtOnce) {
  const std::vector<Ended> ended = at_places(2, [&](const RankInfo& place) {
    RankInfo mine = place;
    if (place.rank == 0) mine.num_ranks = mine.num_local_ranks = 3;
    rendezvous(mine);
  });
  for (const Ended& one : ended) {
    EXPECT_TRUE(says(one, "[ranks] rank 1 was started as one of 2 ranks, rank 0 as one of 3")) << one.what;
    EXPECT_EQ(one.code, ExitCode::kTopology);
  }
}

TEST(Rendezvous, ALeftOverOfAnotherStartIsTurnedAwayAndTheRunGoesOn) {
  std::latch turned_away(1);
  const std::vector<Ended> ended = at_places(3, [&](const RankInfo& place) {
    RankInfo mine = place;
    mine.num_ranks = mine.num_local_ranks = 2;
    mine.job = "slurm-7.0-1";
    if (place.rank == 2) {
      mine.rank = mine.local_rank = 1;
      mine.job = "slurm-7.0-0";
      const CountDown at_end(turned_away);
      rendezvous(mine);
      return;
    }
    if (place.rank == 1) turned_away.wait();
    rendezvous(mine);
  });
  EXPECT_TRUE(
      says(ended[2], "[ranks] rank 1 belongs to another job than rank 0, or to an earlier start of it"))
      << ended[2].what;
  EXPECT_EQ(ended[0].what, "");
  EXPECT_EQ(ended[1].what, "");
}

TEST(Rendezvous, AnotherTokenDoesNotJoin) {
  const std::vector<Ended> ended = at_places(2, [&](const RankInfo& place) {
    RankInfo mine = place;
    MeetOptions options;
    options.join_s = place.rank == 0 ? 3 : 1;
    if (place.rank == 1) mine.token = "another token, as long as need be";
    rendezvous(mine, options);
  });
  EXPECT_TRUE(says(ended[0], "1 of 2 ranks did not arrive")) << ended[0].what;
  EXPECT_TRUE(
      says(ended[1], "it hung up during the handshake: it belongs to another run, or the tokens differ"))
      << ended[1].what;
}

TEST(Rendezvous, SaysWhomItWaitsFor) {
  std::vector<std::string> lines;
  MeetOptions options;
  options.join_s = 5.5;
  options.say = [&](const std::string& line) { lines.push_back(line); };
  at_places(3, [&](const RankInfo& place) {
    if (place.rank == 0) rendezvous(place, options);
  });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("[ranks] waiting for ranks 1, 2 of 3; gives up in "), std::string::npos)
      << lines[0];
}

TEST(Rendezvous, APortThatIsTakenIsNamed) {
  const std::vector<Ended> ended = at_places(2, [](const RankInfo& place) {
    if (place.rank == 1) return;
    const Socket taken = listen_at(rendezvous_endpoint(place, process_environment()));
    rendezvous(place);
  });
  EXPECT_TRUE(says(ended[0], "[ranks] cannot listen at 127.0.0.1:")) << ended[0].what;
  EXPECT_TRUE(says(ended[0], "another run may be using the port")) << ended[0].what;
  EXPECT_EQ(ended[0].code, ExitCode::kTopology);
}

TEST(Rendezvous, AWorldOfOneNeedsNobody) {
  const auto peers = rendezvous({});
  EXPECT_EQ(peers->num_ranks(), 1);
  EXPECT_EQ(peers->connect("self", {0}).size(), 1U);
  EXPECT_FALSE(peers->is_broken());
  peers->mark("a");
  EXPECT_TRUE(peers->is_marked("a"));
}

TEST(Rendezvous, RanksOfOneMachineHandTheTokenOverInAPrivateFile) {
  expect_all_well(at_places(3, [](const RankInfo& place) {
    RankInfo mine = place;
    mine.token = "";
    mine.job = "slurm-1.0-0";
    if (place.rank == 0) std::this_thread::sleep_for(200ms);
    rendezvous(mine)->connect("all", {0, 1, 2});
  }));
}

}  // namespace
}  // namespace tycho
