// Kills, stops, signals and starves tiny runs of one to four ranks at every phase, and checks what is left of
// them.
//   fault_runs --tycho PROGRAM --shim LIBRARY [--trials N] [--jobs N] [--seed N] [--max-ranks N] [--stops]
//   [--keep]
// After each trial: nobody hangs; the ranks that are left end with one exit code and name the cause; no
// committed checkpoint is lost or damaged; the next start resumes from the newest; and the weights at a run's
// end are those of an undisturbed run, bit for bit. --stops: only ranks that stop answering (SIGSTOP) and are
// to be noticed by the others, and ranks that are lost before all have met, so that the others wait, say so,
// and obey a signal. These take up to half a minute each, but no processor: give them many --jobs.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/faults/trial.h"

namespace tycho::faults {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string tycho, shim;
  int64_t trials = 200, jobs = 2, seed = 1, max_ranks = 4;
  bool stops = false, keep = false;
};

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "fault_runs: %s; see the head of tests/faults/fault_runs.cpp\n", text.c_str());
  std::exit(2);
}

Options read_options(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> texts = {{"--tycho", &options.tycho}, {"--shim", &options.shim}};
  const std::map<std::string, int64_t*> numbers = {{"--trials", &options.trials},
                                                   {"--jobs", &options.jobs},
                                                   {"--seed", &options.seed},
                                                   {"--max-ranks", &options.max_ranks}};
  const std::map<std::string, bool*> flags = {{"--stops", &options.stops}, {"--keep", &options.keep}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (flags.contains(name)) {
      *flags.at(name) = true;
      continue;
    }
    if (!texts.contains(name) && !numbers.contains(name)) refuse("expected an option, got " + name);
    if (++i == argc) refuse("expected a value after " + name);
    if (texts.contains(name)) *texts.at(name) = fs::absolute(argv[i]).string();
    if (numbers.contains(name)) *numbers.at(name) = std::max(1L, std::atol(argv[i]));
  }
  if (!fs::exists(options.tycho) || !fs::exists(options.shim))
    refuse("expected --tycho and --shim to be files");
  return options;
}

/// FOLDER and STEPS stand for those of the trials.
constexpr const char* kRecipe = R"(local t = require "tycho"
local r = t.recipe "faults"
r.seq_len, r.global_batch, r.threads = 16, "12sp", 1
r.max_duration = "STEPSba"
r.model = t.model.llama { width = 16, layers = 1, heads = 2, kv_heads = 1, ffn_width = 32, vocab_size = 300 }
r.optimizer = t.optim.adamw { lr = 5e-3 }
r.train_data = t.data.mds { local_dir = "FOLDER/learn" }
r.eval_data.val = t.data.mds { local_dir = "FOLDER/val" }
r.eval.every, r.eval.batches = "6ba", 1
r.ckpt.every, r.ckpt.keep = "5ba", 2
r.log.every = "1ba"
return r
)";
constexpr const char* kMakeData = R"(cd 'FOLDER' && (
TYCHO tokenizer train text.txt --vocab-size 300 --out tokenizer.json
for part in learn val; do
  TYCHO data convert text.txt --tokenizer tokenizer.json --concat-tokens 16 --no-separator --out $part || exit 1
done) >log 2>&1)";

std::string filled_in(std::string text, const std::map<std::string, std::string>& names) {
  for (const auto& [name, value] : names)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

/// Every step takes milliseconds, and the run saves and evaluates all the time.
void prepare(const Place& place) {
  const std::map<std::string, std::string> names = {{"FOLDER", place.folder.string()},
                                                    {"STEPS", std::to_string(place.total_steps)},
                                                    {"TYCHO", "'" + place.tycho + "'"}};
  std::ofstream text(place.folder / "text.txt");
  for (int line = 0; line < 4000; ++line) text << "line " << line * 7919 % 4001 << " of a small text\n";
  text.close();
  std::ofstream(place.folder / "x.lua") << filled_in(kRecipe, names);
  if (std::system(filled_in(kMakeData, names).c_str()) != 0)
    refuse("the data could not be made: see " + (place.folder / "log").string());
}

/// What the random numbers of one trial give.
Trial draw(int64_t number, const Options& options) {
  std::mt19937_64 random(static_cast<uint64_t>(options.seed) * 1'000'003 + static_cast<uint64_t>(number));
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  while (true) {
    Trial trial{.number = number};
    const size_t size = below(10);  // most with one rank or two, which are quick
    trial.num_ranks = std::min<int>(size < 4   ? 1
                                    : size < 8 ? 2
                                    : size < 9 ? 3
                                               : 4,
                                    static_cast<int>(options.max_ranks));
    trial.moment = moments()[below(moments().size())];
    trial.struck_rank =
        trial.moment.any_rank ? static_cast<int>(below(static_cast<size_t>(trial.num_ranks))) : 0;
    trial.launched = trial.num_ranks > 1 && below(4) == 0;
    trial.nth = 1 + static_cast<int64_t>(below(static_cast<size_t>(trial.moment.max_nth)));
    const std::string call = trial.moment.call;
    const bool reads = call == "open" || call == "pread";
    std::vector<std::string> kinds = {"kill", "kill", "term", "int", "usr1", "eio"};
    if (!reads) kinds.emplace_back("enospc");
    if (trial.launched) kinds.emplace_back("stop, term");
    if (options.stops && trial.num_ranks > 1 && !trial.launched) kinds.emplace_back("stop");
    trial.kind = kinds[below(kinds.size())];
    const bool alone = trial.num_ranks == 1 || trial.launched;
    const bool is_lost_early = trial.moment.before_meeting && !alone;
    if (options.stops == (is_lost_early || trial.kind == "stop")) return trial;
  }
}

struct Row {
  int64_t num_trials = 0, num_struck = 0;
  std::vector<double> seconds;
};

class Program {
 public:
  explicit Program(Options options) : options_(std::move(options)) {
    std::string name = (fs::temp_directory_path() / "tycho-faults-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) refuse("cannot make a folder for the runs");
    place_ = {.tycho = options_.tycho, .shim = options_.shim, .folder = name};
    if (options_.stops) place_.limit_s = 90;
  }

  int run() {
    prepare(place_);
    for (int ranks = 1; ranks <= options_.max_ranks; ++ranks) {
      const std::string run = "undisturbed-" + std::to_string(ranks);
      if (const std::string problem = run_undisturbed(place_, ranks, run); !problem.empty())
        refuse("a run without faults failed:\n" + problem);
      weights_[ranks] = final_weights(place_, run);
    }
    std::vector<std::thread> threads;
    for (int64_t job = 0; job < options_.jobs; ++job) threads.emplace_back([this, job] { work(job); });
    for (std::thread& thread : threads) thread.join();
    print_table();
    int64_t num_struck = 0;
    for (const auto& [key, row] : rows_) num_struck += row.num_struck;
    if (3 * num_struck < options_.trials) refuse("too few faults have struck: is the library loaded?");
    if (num_failed_ == 0 && !options_.keep) fs::remove_all(place_.folder);
    std::printf("%lld passed, %lld failed; %lld runs came to their end%s%s\n",
                static_cast<long long>(options_.trials - num_failed_), static_cast<long long>(num_failed_),
                static_cast<long long>(num_finished_.load()), num_failed_ > 0 ? ", see " : "",
                num_failed_ > 0 ? place_.folder.c_str() : "");
    return num_failed_ == 0 ? 0 : 1;
  }

 private:
  void work(int64_t job) {
    for (int64_t number; (number = next_++) < options_.trials;) {
      const Trial trial = draw(number, options_);
      const std::string run = "job-" + std::to_string(job) + "-ranks-" + std::to_string(trial.num_ranks);
      TrialResult result = run_trial(trial, place_, run);
      if (result.is_finished) finish(trial, run, result);
      const std::lock_guard lock(mutex_);
      Row& row = rows_[{trial.kind, trial.num_ranks}];
      ++row.num_trials, row.num_struck += result.has_struck;
      if (result.ended_s) row.seconds.push_back(*result.ended_s);
      if (result.problem.empty()) continue;
      ++num_failed_;
      const std::string kept = "failed-" + std::to_string(number);
      std::printf("%s: %s(kept in %s)\n", trial.describe().c_str(), result.problem.c_str(), kept.c_str());
      std::fflush(stdout);
      keep(run, kept);
    }
  }

  /// A run that came to its end: the bits are compared, and the next trial starts afresh.
  void finish(const Trial& trial, const std::string& run, TrialResult& result) {
    const std::string weights = final_weights(place_, run);
    ++num_finished_;
    if (weights.empty() || weights != weights_.at(trial.num_ranks)) {
      result.problem += "the weights at the end are others than those of an undisturbed run; ";
      return;
    }
    fs::remove_all(place_.folder / run);
  }

  /// Moves a run and its logs away.
  void keep(const std::string& run, const std::string& kept) const {
    fs::create_directories(place_.folder / kept);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place_.folder))
      if (const std::string name = entry.path().filename().string();
          name == run || name.starts_with(run + "."))
        fs::rename(entry.path(), place_.folder / kept / name, error);
  }

  void print_table() {
    std::printf("\n%-12s %5s %7s %7s   from the fault until all ranks have ended\n", "fault", "ranks",
                "trials", "struck");
    for (auto& [key, row] : rows_) {
      std::printf("%-12s %5d %7lld %7lld", key.first.c_str(), key.second,
                  static_cast<long long>(row.num_trials), static_cast<long long>(row.num_struck));
      std::sort(row.seconds.begin(), row.seconds.end());
      if (!row.seconds.empty())
        std::printf("   median %6.2f s, longest %6.2f s, of %zu", row.seconds[row.seconds.size() / 2],
                    row.seconds.back(), row.seconds.size());
      std::printf("\n");
    }
  }

  Options options_;
  Place place_;
  std::atomic<int64_t> next_ = 0;
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, Row> rows_;
  std::map<int, std::string> weights_;  // at the end of an undisturbed run, by the number of ranks
  std::atomic<int64_t> num_finished_ = 0;
  int64_t num_failed_ = 0;
};

}  // namespace
}  // namespace tycho::faults

int main(int argc, char** argv) {
  return tycho::faults::Program(tycho::faults::read_options(argc, argv)).run();
}
