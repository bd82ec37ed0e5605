// Appending and reading a ledger: several writers, torn lines, compaction under way.
#include "trainer/sweep/ledger.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

class LedgerTest : public testing::Test {
 protected:
  std::string file() const { return dir_ / "ledger.jsonl"; }
  void write_raw(const std::string& text) const { std::ofstream(file(), std::ios::app) << text; }
  TempDir dir_;
  Ledger ledger_{real_files(), dir_.path()};
};

TEST_F(LedgerTest, ReadsWhatWasAppendedOnceAndOnlyWhatIsNew) {
  EXPECT_TRUE(ledger_.read_new().facts.empty());
  ledger_.append({{"type", "a"}, {"text", "quotes \" and \n lines"}});
  auto news = ledger_.read_new();
  ASSERT_EQ(news.facts.size(), 1u);
  EXPECT_EQ(news.facts[0].at("text"), "quotes \" and \n lines");
  EXPECT_FALSE(news.restarted);
  EXPECT_TRUE(ledger_.read_new().facts.empty());
}

TEST_F(LedgerTest, ALineThatWasCutInHalfIsLeftOutAndTheNextStandsAlone) {
  const std::string line = ledger_line({{"type", "first"}, {"value", 0.5}});
  for (size_t length = 1; length < line.size(); ++length) {
    std::filesystem::remove(file());
    write_raw(line.substr(0, length));
    Ledger ledger(real_files(), dir_.path());
    ledger.append({{"type", "second"}});
    const auto news = ledger.read_new();
    ASSERT_EQ(news.facts.size(), 1u) << length;
    EXPECT_EQ(news.facts[0].at("type"), "second");
    EXPECT_EQ(ledger.damaged(), 1);
  }
}

TEST_F(LedgerTest, ALineOnItsWayIsReadWhenItHasArrived) {
  const std::string line = ledger_line({{"type", "slow"}}) + "\n";
  write_raw(line.substr(0, 9));
  EXPECT_TRUE(ledger_.read_new().facts.empty());
  EXPECT_EQ(ledger_.damaged(), 0);
  write_raw(line.substr(9));
  EXPECT_EQ(ledger_.read_new().facts.size(), 1u);
}

TEST_F(LedgerTest, EveryFlippedBitIsNoticed) {
  const std::string line = ledger_line({{"type", "end"}, {"value", 1.25}});
  for (size_t i = 0; i < line.size(); ++i) {
    for (const int bit : {0, 3, 6}) {
      std::string flipped = line;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_TRUE(read_ledger_line(flipped).is_null()) << flipped;
    }
  }
  EXPECT_EQ(read_ledger_line(line).at("value"), 1.25);
}

TEST_F(LedgerTest, LinesOfManyProcessesDoNotMixAlsoWhileOneCompacts) {
  constexpr int kWriters = 3, kFacts = 60;
  ledger_.append({{"type", "start"}});
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t child = fork();
    if (child == 0) {
      Ledger mine(real_files(), dir_.path());
      for (int i = 0; i < kFacts; ++i) mine.append({{"type", "fact"}, {"writer", w}, {"n", i}});
      _exit(0);
    }
    children.push_back(child);
  }
  std::vector<Json> all;
  const auto take = [&] {
    auto news = ledger_.read_new();
    if (news.restarted) all.clear();
    all.insert(all.end(), news.facts.begin(), news.facts.end());
  };
  for (int i = 0; i < 20; ++i) {
    take();
    ledger_.compact(all);
    usleep(3000);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  take();
  std::set<std::pair<int, int>> seen;
  for (const Json& fact : all)
    if (fact.at("type") == "fact") seen.emplace(fact.at("writer"), fact.at("n"));
  EXPECT_EQ(seen.size(), static_cast<size_t>(kWriters * kFacts));
  EXPECT_EQ(ledger_.damaged(), 0);
}

TEST_F(LedgerTest, GarbageIsSkipped) {
  write_raw("\n\n{}\n[1]\nnull\n\x01\xff\n{\"type\":1,\"sum\":\"00000000\"}\n" + std::string(100000, '{') +
            "\n");
  ledger_.append({{"type", "good"}});
  EXPECT_EQ(ledger_.read_new().facts.size(), 1u);
  EXPECT_EQ(ledger_.damaged(), 6);
}

}  // namespace
}  // namespace tycho
