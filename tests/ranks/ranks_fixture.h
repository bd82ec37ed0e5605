// What tests of several processes share: a tiny data set, a tiny recipe, ranks by `tycho launch` or by hand,
// and what their runs left.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/host/shell.h"
#include "trainer/base/json.h"

namespace tycho {

namespace fs = std::filesystem;

class RanksTest : public ShellTest {
 protected:
  static void SetUpTestSuite() {
    data_ = fs::temp_directory_path() / ("tycho-ranks-" + std::to_string(getpid()));
    fs::create_directories(data_ / "text");
    write_text(texts());
    const std::string tokenizer = (data_ / "tokenizer.json").string();
    const Outcome made = shell("tycho tokenizer train " + texts() + " --vocab-size 300 --out " + tokenizer +
                               " && tycho data convert " + texts() + " --tokenizer " + tokenizer +
                               " --concat-tokens 32 --no-separator --out " + data_.string());
    ASSERT_EQ(made.code, 0) << made.output;
  }
  static std::string texts() { return (data_ / "text" / "words.txt").string(); }
  /// Writes 400 KB of drawn words, common ones more often. Texts of the tree would change with it, and how
  /// far two runs drift apart in 24 steps depends on the texts.
  static void write_text(const std::string& path) {
    std::ofstream out(path);
    std::mt19937_64 random(33);  // its numbers are the standard's, those of distributions are not
    std::vector<std::string> words(600);
    for (std::string& word : words)
      for (uint64_t left = 2 + random() % 7; left > 0; --left) word += static_cast<char>('a' + random() % 26);
    for (int i = 0; i < 70'000; ++i) {
      const uint64_t limit = 1 + random() % words.size();
      out << words[random() % limit] << (random() % 12 == 0 ? ".\n" : " ");
    }
  }
  static void TearDownTestSuite() { fs::remove_all(data_); }

  void SetUp() override {
    ShellTest::SetUp();
    write(recipe());
  }

  static std::string recipe(const std::string& lines = "") {
    return "local t = require \"tycho\"\nlocal r = t.recipe \"tiny\"\n"
           "r.seq_len, r.global_batch, r.max_duration, r.threads = 32, \"8sp\", \"24ba\", 1\n"
           "r.model = t.model.llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64, "
           "vocab_size = 300 }\n"
           "r.optimizer = t.optim.adamw { lr = 5e-3, weight_decay = 0.1 }\n"
           "r.tokenizer = \"" +
           (data_ / "tokenizer.json").string() + "\"\nr.train_data = t.data.mds { local_dir = \"" +
           data_.string() + "\" }\nr.eval_data.same = t.data.mds { local_dir = \"" + data_.string() +
           "\" }\nr.eval.every, r.eval.batches = \"12ba\", 3\nr.ckpt.every = \"8ba\"\nr.log.every = "
           "\"1ba\"\n" +
           lines + "return r\n";
  }

  Outcome run(int ranks, const std::string& name, const std::string& pins = "") const {
    return here("tycho launch -n " + std::to_string(ranks) + " run x.lua run_dir=" + name + " " + pins);
  }
  /// A shell line; the variable `name` is then the program itself: a subshell that execs. Its log: NAME.log.
  /// Shells have programs in the background ignore SIGINT.
  static std::string in_background(const std::string& command, const std::string& name) {
    return "(exec env --default-signal=INT " + command + ") >" + name + ".log 2>&1 & " + name + "=$!; ";
  }
  /// A shell line that starts the ranks by themselves, as a scheduler does, each with arguments of its own.
  /// `then` may use $rank_0 and $rank_1, their processes; the codes of both are printed as "codes A B".
  static std::string by_hand(const std::string& rank_0, const std::string& rank_1, const std::string& then,
                             const std::string& verb = "run",
                             const std::vector<std::string>& folders = {".", "."}) {
    const std::string common =
        "TYCHO_NUM_RANKS=2 TYCHO_NUM_LOCAL_RANKS=2 TYCHO_ADDRESS=127.0.0.1 TYCHO_PORT=$port "
        "TYCHO_TOKEN=0123456789abcdef ";
    const auto start = [&](int rank, const std::string& arguments) {
      const std::string r = std::to_string(rank);
      return in_background("env -C " + folders.at(static_cast<size_t>(rank)) + " " + common + "TYCHO_RANK=" +
                               r + " TYCHO_LOCAL_RANK=" + r + " " TYCHO_PROGRAM " " + verb + " " + arguments,
                           "rank_" + r);
    };
    return "port=$((20000 + $$ % 10000)); " + start(0, rank_0) + start(1, rank_1) + then +
           "; wait $rank_0; a=$?; wait $rank_1; echo codes $a $?";
  }
  /// A shell line that trains x.lua on two ranks, each of which takes its machine for its own.
  static std::string two_machines(const std::string& run) {
    const auto start = [&](const std::string& rank) {
      return in_background("env RANK=" + rank +
                               " WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 " +
                               "MASTER_PORT=$port " TYCHO_PROGRAM " run x.lua run_dir=" + run,
                           "rank_" + rank);
    };
    return "port=$((20000 + $$ % 10000)); " + start("0") + start("1") +
           "wait $rank_0; a=$?; wait $rank_1; echo codes $a $?";
  }
  std::string text(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Waits, in a shell, until the run has made a step.
  static std::string until_it_trains(const std::string& run) {
    return "for i in $(seq 2400); do test -s " + run + "/metrics.jsonl && break; sleep 0.05; done; ";
  }

  /// Of metrics.jsonl: one number of each step.
  std::map<int64_t, double> numbers(const std::string& run, const std::string& key) const {
    std::map<int64_t, double> all;
    std::ifstream in(folder_ / run / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const Json record = parse_json(line, "metrics.jsonl");
      if (record.contains(key)) all[record.at("step")] = record.at(key);
    }
    return all;
  }
  std::vector<Json> events(const std::string& run, const std::string& kind) const {
    std::vector<Json> all;
    std::ifstream in(folder_ / run / "events.jsonl");
    for (std::string line; std::getline(in, line);)
      if (Json record = parse_json(line, "events.jsonl"); record.at("kind") == kind) all.push_back(record);
    return all;
  }
  /// `tolerance` is that of the first ten steps, where a wrong sum shows. Sums in another order round
  /// differently, every step of Adam makes that difference larger, and how fast depends on the machine and
  /// the texts: later steps may differ by ten times as much.
  void expect_close(const std::map<int64_t, double>& a, const std::map<int64_t, double>& b,
                    double tolerance = 1e-5) const {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_FALSE(a.empty());
    for (const auto& [step, value] : a)
      EXPECT_NEAR(value / b.at(step), 1, step <= 10 ? tolerance : 10 * tolerance) << "step " << step;
  }
  std::string final_weights(const std::string& run) const {
    for (const auto& entry : fs::directory_iterator(folder_ / run / "checkpoints"))
      if (entry.path().filename().string().rfind("step-000000024", 0) == 0)
        return text(run + "/checkpoints/" + entry.path().filename().string() + "/rank-00000.safetensors");
    ADD_FAILURE() << run << " has no checkpoint of its end";
    return "";
  }

  static inline fs::path data_;
};

}  // namespace tycho
