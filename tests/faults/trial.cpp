// Starts the ranks of a trial, follows them to their end, and judges what is left.
#include "tests/faults/trial.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "tests/trainer/rendezvous/reserved_port.h"
#include "trainer/base/json.h"

extern char** environ;

namespace tycho::faults {
namespace {

namespace fs = std::filesystem;

constexpr int kKilled = 137, kTerminated = 143;
constexpr double kStopBeforeTerm_s = 0.3;
constexpr double kWaitIsSaid_s = 7;  // ranks that wait for others say so after 5 s

double now_s() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Process {
  pid_t pid = -1;
  int code = -1;  // -1 while it runs; 128 + signal for one that was killed
  fs::path log;
};

Process start(const std::vector<std::string>& argv, const std::map<std::string, std::string>& variables,
              const fs::path& log) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  std::vector<char*> words, environment;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : entries) environment.push_back(const_cast<char*>(entry.c_str()));
  words.push_back(nullptr), environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  Process process{.log = log};
  if (posix_spawn(&process.pid, argv[0].c_str(), &actions, nullptr, words.data(), environment.data()) != 0)
    process.code = 127;
  posix_spawn_file_actions_destroy(&actions);
  return process;
}

/// Takes the codes of those that have ended; true when all have.
bool reap(std::vector<Process>& all) {
  bool ended = true;
  for (Process& one : all) {
    int status = 0;
    if (one.code < 0 && waitpid(one.pid, &status, WNOHANG) == one.pid)
      one.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended &= one.code >= 0;
  }
  return ended;
}

std::optional<double> mark_s(const fs::path& mark) {
  const std::string text = text_of(mark);
  if (text.find('\n') == std::string::npos) return {};
  return static_cast<double>(std::stoll(text)) * 1e-9;
}

/// Newest first.
std::vector<int64_t> committed_steps(const fs::path& run) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator it(run / "checkpoints", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("step-") && fs::exists(it->path() / "COMMIT"))
      steps.push_back(std::stoll(name.substr(5)));
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

/// The step that the newest attempt started from; nothing when it did not come so far.
std::optional<int64_t> resumed_step(const fs::path& run, size_t events_before) {
  std::ifstream in(run / "events.jsonl");
  in.seekg(static_cast<std::streamoff>(events_before));
  std::optional<int64_t> step;
  for (std::string line; std::getline(in, line);) {
    const auto record = Json::parse(line, nullptr, false);
    if (!record.is_object() || !record.contains("kind")) continue;
    if (record["kind"] == "resume") step = record["facts"]["step"].get<int64_t>();
    if (record["kind"] == "run_start" && record["facts"]["first_step"] == 0) step = 0;
  }
  return step;
}

/// Attempts never decrease in the file, and steps never within an attempt.
std::string metrics_problem(const fs::path& run) {
  std::ifstream in(run / "metrics.jsonl");
  int64_t attempt = 0, step = 0;
  for (std::string line; std::getline(in, line);) {
    const auto record = Json::parse(line, nullptr, false);
    if (!record.is_object()) continue;  // a torn line of a killed process
    const int64_t now = record["attempt"], at = record["step"];
    if (now < attempt || (now == attempt && at < step))
      return "metrics.jsonl goes back from attempt " + std::to_string(attempt) + " step " +
             std::to_string(step) + " to attempt " + std::to_string(now) + " step " + std::to_string(at);
    attempt = now;
    step = at;
  }
  return "";
}

class Runner {
 public:
  Runner(const Trial& trial, const Place& place, const std::string& run)
      : trial_(trial), place_(place), run_(place.folder / run), mark_(place.folder / (run + ".mark")) {}

  TrialResult run() {
    before_ = committed_steps(run_);
    std::error_code error;
    events_before_ = fs::exists(run_ / "events.jsonl") ? fs::file_size(run_ / "events.jsonl", error) : 0;
    fs::remove(mark_);
    start_all();
    follow();
    judge();
    return result_;
  }

 private:
  std::map<std::string, std::string> fault_variables() const {
    const std::string action = trial_.kind.starts_with("stop") ? "stop" : trial_.kind;
    const std::string rank =
        trial_.num_ranks == 1 && !trial_.launched ? "-1" : std::to_string(trial_.struck_rank);
    return {{"LD_PRELOAD", place_.shim},
            {"TYCHO_FAULT_MARK", mark_.string()},
            {"TYCHO_FAULT", std::string("call=") + trial_.moment.call + ",path=" + trial_.moment.path +
                                ",nth=" + std::to_string(trial_.nth) + ",do=" + action + ",rank=" + rank}};
  }

  void start_all() {
    const int64_t until = (before_.empty() ? 0 : before_.front()) + place_.steps_per_trial;
    // --force: several trials in a row may die before anything is saved.
    std::vector<std::string> command = {"run", (place_.folder / "x.lua").string(), "run_dir=" + run_.string(),
                                        "--force"};
    if (until < place_.total_steps) command.insert(command.end(), {"--until", std::to_string(until) + "ba"});
    std::map<std::string, std::string> variables = fault_variables();
    if (trial_.launched || trial_.num_ranks == 1) {
      std::vector<std::string> argv = {place_.tycho};
      if (trial_.launched)
        argv.insert(argv.end(), {"launch", "-n", std::to_string(trial_.num_ranks), "--grace", "5"});
      argv.insert(argv.end(), command.begin(), command.end());
      all_.push_back(faults::start(argv, variables, log_of(0)));
      return;
    }
    const std::string port = std::to_string(port_.number()), count = std::to_string(trial_.num_ranks);
    command.insert(command.begin(), place_.tycho);
    for (int rank = 0; rank < trial_.num_ranks; ++rank) {
      const std::string number = std::to_string(rank);
      variables["TYCHO_RANK"] = variables["TYCHO_LOCAL_RANK"] = number;
      variables["TYCHO_NUM_RANKS"] = variables["TYCHO_NUM_LOCAL_RANKS"] = count;
      variables["TYCHO_ADDRESS"] = "127.0.0.1", variables["TYCHO_PORT"] = port,
      variables["TYCHO_TOKEN"] = "of-fault-trials-alone";
      all_.push_back(faults::start(command, variables, log_of(rank)));
    }
  }

  fs::path log_of(int rank) const { return run_.string() + ".rank-" + std::to_string(rank) + ".log"; }

  void follow() {
    const double begin = now_s();
    bool told = false;
    while (!reap(all_)) {
      const std::optional<double> mark = mark_s(mark_);
      const double since_s = mark ? now_s() - *mark : 0;
      if (!told && trial_.kind == "stop, term" && since_s > kStopBeforeTerm_s) {
        kill(all_[0].pid, SIGTERM);
        told = true;
      }
      if (!told && is_lost_before_meeting() && since_s > kWaitIsSaid_s) {
        tell_those_who_wait();
        told = true;
      }
      if (trial_.kind == "stop" && all_.size() > 1 && mark && only_the_struck_one_is_left()) wake();
      if (now_s() - begin > place_.limit_s) return give_up();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (others_ended_s_ == 0) others_ended_s_ = now_s();
  }

  /// Nobody can know of such a rank: the others wait for it, say so, and obey a signal.
  bool is_lost_before_meeting() const { return trial_.moment.before_meeting && all_.size() > 1; }
  /// Rank 0 tells the others, unless it is the one that is lost: then each is told.
  void tell_those_who_wait() {
    for (size_t i = 0; i < all_.size(); ++i) {
      const bool is_struck = static_cast<int>(i) == trial_.struck_rank;
      if (all_[i].code >= 0 || is_struck || (i > 0 && trial_.struck_rank != 0)) continue;
      kill(all_[i].pid, SIGTERM);
    }
  }
  bool only_the_struck_one_is_left() const {
    for (size_t i = 0; i < all_.size(); ++i)
      if ((all_[i].code < 0) != (static_cast<int>(i) == trial_.struck_rank)) return false;
    return true;
  }
  /// The one that was stopped, when the others have gone on without it. Before the meeting it would look for
  /// them.
  void wake() {
    if (others_ended_s_ != 0) return;
    others_ended_s_ = now_s();
    const pid_t pid = all_[static_cast<size_t>(trial_.struck_rank)].pid;
    if (trial_.moment.before_meeting) kill(pid, SIGTERM);
    kill(pid, SIGCONT);
  }

  /// Also one that is stopped, which is only ended by this.
  void give_up() {
    for (const Process& one : all_)
      if (one.code < 0) result_.problem += "process " + std::to_string(&one - all_.data()) + " hangs; ";
    for (const Process& one : all_)
      if (one.code < 0) kill(one.pid, SIGKILL);
    while (!reap(all_)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  void fail(const std::string& text) { result_.problem += text + "; "; }

  bool is_signal() const {
    return std::set<std::string>{"term", "int", "usr1", "stop, term"}.contains(trial_.kind);
  }
  /// The struck rank fails by an error of its own, which the others hear of.
  bool knows_why() const {
    return (trial_.kind == "eio" || trial_.kind == "enospc") && !is_lost_before_meeting();
  }
  int signal_code() const { return trial_.kind == "int" ? 130 : trial_.kind == "usr1" ? 138 : kTerminated; }

  /// What a process may end with.
  std::set<int> allowed(int rank) const {
    if (!result_.has_struck) return {0};
    const bool struck = trial_.launched || trial_.num_ranks == 1 || rank == trial_.struck_rank;
    if (trial_.kind == "kill") return struck ? std::set<int>{kKilled} : std::set<int>{kTerminated};
    if (trial_.kind == "stop") return {0, kTerminated};  // 0: at the very end nobody needs it any more
    if (is_signal()) {
      // Too late to stop anything, or so early that there was no handler and the others lost a rank.
      std::set<int> codes = {0, signal_code()};
      if (!struck) codes.insert(kTerminated);
      return codes;
    }
    std::set<int> codes = trial_.moment.codes_of_file_faults;
    if (is_lost_before_meeting() && !struck)
      codes.insert(kTerminated);  // or the struck one could tell them why
    return codes;
  }

  void judge() {
    const std::optional<double> mark = mark_s(mark_);
    result_.has_struck = mark.has_value();
    if (!result_.problem.empty()) return;
    std::set<int> survivors;
    for (size_t i = 0; i < all_.size(); ++i) {
      const int rank = static_cast<int>(i), code = all_[i].code;
      if (!allowed(rank).contains(code))
        fail("rank " + std::to_string(rank) + " ended with " + std::to_string(code));
      if (rank != trial_.struck_rank || all_.size() == 1 || knows_why()) survivors.insert(code);
    }
    if (survivors.size() > 1) fail("ranks disagree on the exit code");
    if (mark && *survivors.begin() != 0) result_.ended_s = others_ended_s_ - *mark;
    judge_names();
    judge_checkpoints();
    if (const std::string problem = metrics_problem(run_); !problem.empty()) fail(problem);
    result_.is_finished = !after_.empty() && after_.front() >= place_.total_steps;
  }

  /// The ranks that are left say which one is gone, or what it failed of.
  void judge_names() {
    if (!result_.has_struck || is_signal() || all_.size() == 1) return;
    const std::string name = "rank " + std::to_string(trial_.struck_rank);
    for (size_t i = 0; i < all_.size(); ++i)
      if (static_cast<int>(i) != trial_.struck_rank && all_[i].code != 0 &&
          text_of(all_[i].log).find(name) == std::string::npos)
        fail("rank " + std::to_string(i) + " does not name " + name);
  }

  void judge_checkpoints() {
    after_ = committed_steps(run_);
    if (!before_.empty() && (after_.empty() || after_.front() < before_.front()))
      fail("a committed checkpoint is lost");
    const std::optional<int64_t> from = resumed_step(run_, events_before_);
    const bool may_fall_back = trial_.kind == "eio" && std::string(trial_.moment.call) == "pread";
    if (from && *from != (before_.empty() ? 0 : before_.front()) && !may_fall_back)
      fail("it resumed from step " + std::to_string(*from) + " and not " +
           std::to_string(before_.empty() ? 0 : before_.front()));
    if (after_.empty()) return;
    std::vector<Process> verify = {
        faults::start({place_.tycho, "ckpt", "verify", run_.string()}, {}, run_.string() + ".verify.log")};
    while (!reap(verify)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (verify[0].code != 0) fail("a checkpoint is damaged: " + text_of(verify[0].log));
  }

  const Trial& trial_;
  const Place& place_;
  ReservedPort port_;
  fs::path run_, mark_;
  std::vector<Process> all_;
  std::vector<int64_t> before_, after_;
  size_t events_before_ = 0;
  double others_ended_s_ = 0;  // all but one that was stopped
  TrialResult result_;
};

}  // namespace

const std::vector<Moment>& moments() {
  static const std::vector<Moment> all = {
      {"the recipe is read", "open", "/x.lua", 1, true, true, {10}},
      {"the data is opened", "open", "/learn/train/index.json", 1, true, true, {12}},
      {"the folder is taken", "create", "/LOCK.epoch-", 1, false, false, {15}},
      {"the record is written", "rename", "/recipe.json", 1, false, false, {0, 15}},
      {"a checkpoint is read", "pread", "/rank-00000.safetensors", 2, true, false, {0, 12}},
      {"a batch is read", "pread", "/learn/train/shard", 60, true, false, {12}},
      {"a step is recorded", "write", "/metrics.jsonl", 20, false, false, {0}},
      {"an evaluation reads", "pread", "/val/train/shard", 40, true, false, {12}},
      {"an event is recorded", "write", "/events.jsonl", 5, false, false, {0, 15}},
      {"a shard is created", "create", "/rank-00000.safetensors", 3, false, false, {0}},
      {"a shard is written", "write", "/rank-00000.safetensors", 6, false, false, {0}},
      {"a shard is synced", "fsync", "/rank-00000.safetensors", 3, false, false, {0}},
      {"COMMIT is written", "write", "/COMMIT.tmp-", 3, false, false, {0}},
      {"COMMIT gets its name", "rename", "/COMMIT", 3, false, false, {0}},
      {"latest gets its name", "rename", "/latest", 3, false, false, {0}},
      {"an old checkpoint goes", "unlink", "/COMMIT", 3, false, false, {0}},
  };
  return all;
}

std::string Trial::describe() const {
  return "trial " + std::to_string(number) + ": " + std::to_string(num_ranks) +
         (num_ranks == 1 ? " rank" : " ranks") + (launched ? " by launch" : "") + ", " + kind + " on rank " +
         std::to_string(struck_rank) + " when " + moment.name + " (" + std::to_string(nth) + ")";
}

TrialResult run_trial(const Trial& trial, const Place& place, const std::string& run) {
  return Runner(trial, place, run).run();
}

std::string run_undisturbed(const Place& place, int num_ranks, const std::string& run) {
  const fs::path folder = place.folder / run;
  std::vector<Process> all = {faults::start({place.tycho, "launch", "-n", std::to_string(num_ranks), "run",
                                             (place.folder / "x.lua").string(), "run_dir=" + folder.string()},
                                            {}, folder.string() + ".log")};
  while (!reap(all)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return all[0].code == 0 ? "" : text_of(all[0].log);
}

std::string final_weights(const Place& place, const std::string& run) {
  std::error_code error;
  for (fs::directory_iterator it(place.folder / run / "checkpoints", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("step-") && fs::exists(it->path() / "COMMIT") &&
        std::stoll(name.substr(5)) >= place.total_steps)
      return text_of(it->path() / "rank-00000.safetensors");
  }
  return "";
}

}  // namespace tycho::faults
