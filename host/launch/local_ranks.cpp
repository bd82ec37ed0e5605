// One thread waits for signals, for output and for ranks to end.
#include "host/launch/local_ranks.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "host/launch/prefixed_lines.h"
#include "host/launch/rank_reports.h"
#include "host/process/child_process.h"
#include "host/process/signal_queue.h"
#include "trainer/base/error.h"
#include "trainer/base/process/stop_signals.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/launcher_reports.h"
#include "trainer/rendezvous/rank_info.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kImpatient = std::chrono::seconds(2);  // as host/signals.cpp
constexpr auto kNoteAfter = std::chrono::seconds(1);  // ranks that fail together need no note
constexpr auto kSameError = std::chrono::seconds(5);  // ranks with one error end within this time
constexpr auto kForever = Clock::time_point::max();
constexpr int kReadsAtOnce = 64;  // so that a rank that never stops writing does not keep signals out

/// Writes to stderr. Output that cannot be written is lost: a closed terminal must not end the ranks.
void to_stderr(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

/// Returns true for a clean exit with a saved checkpoint.
bool is_stop(const ChildEnd& end) { return end.signal == 0 && is_stop_code(end.code); }

std::vector<int> queued_signals() {
  std::vector<int> signals(kStopSignals.begin(), kStopSignals.end());
  signals.push_back(SIGCHLD);
  return signals;
}

struct Rank {
  Rank(int number_, ChildCommand command)
      : number(number_), process(with_reports(command)), lines(fmt::format("[rank {}] ", number_)) {
    reports.close_rank_end();
  }
  const ChildCommand& with_reports(ChildCommand& command) const {
    command.inherited.push_back(reports.rank_end());
    command.environment.emplace_back(kReportVariable, std::to_string(reports.rank_end()));
    return command;
  }

  int number;
  RankReports reports;
  ChildProcess process;
  PrefixedLines lines;
  bool was_killed = false;  // it did not end in time
  std::optional<Clock::time_point> ended_at;
  bool error_is_shown = false;
};

class Watch {
 public:
  explicit Watch(const LocalRanks& what)
      : grace_(std::chrono::duration_cast<Clock::duration>(what.grace)),
        is_prompt_(what.is_prompt),
        signals_(queued_signals()) {
    std::signal(SIGCHLD, SIG_DFL);  // the parent process may have ignored it, and ends would not be reported
    LocalRanks given = what;
    if (given.token.empty()) given.token = random_hex(16);
    // With one machine rank 0 gets its listening socket as it is, so that no other process can take the port;
    // here it closes when the ranks have it.
    Socket listener;
    if (given.port.empty()) {
      listener = listen_at(numeric_endpoint(given.address, 0));
      given.port = std::to_string(local_end(listener.fd()).port());
    }
    for (int local = 0; local < given.num_ranks; ++local)
      ranks_.push_back(
          std::make_unique<Rank>(given.node * given.num_ranks + local, command_of(given, local, listener)));
  }

  int run() {
    while (any_runs()) {
      wait();
      while (const std::optional<signalfd_siginfo> signal = signals_.next()) take_signal(*signal);
      for (const auto& rank : ranks_) {
        show_output(*rank);
        rank->reports.read();
      }
      reap();
      show_errors();
      keep_deadlines();
      kill_late_ranks();
    }
    for (const auto& rank : ranks_) {
      show_output(*rank);  // its last output; does not wait for a process that it left behind
      to_stderr(rank->lines.finish());
      rank->reports.read();
    }
    show_errors();
    return code_;
  }

 private:
  static ChildCommand command_of(const LocalRanks& what, int local_rank, const Socket& listener) {
    const int rank = what.node * what.num_ranks + local_rank;
    ChildCommand command = {
        .argv = what.argv,
        .environment = {{"TYCHO_RANK", std::to_string(rank)},
                        {"TYCHO_NUM_RANKS", std::to_string(what.num_nodes * what.num_ranks)},
                        {"TYCHO_LOCAL_RANK", std::to_string(local_rank)},
                        {"TYCHO_NUM_LOCAL_RANKS", std::to_string(what.num_ranks)},
                        {"TYCHO_ADDRESS", what.address},
                        {"TYCHO_PORT", what.port},
                        {"TYCHO_TOKEN", what.token}},
        .is_piped = rank > 0,
        .orphan_signal = SIGKILL};
    if (rank == 0 && listener.fd() >= 0) {
      command.inherited.push_back(listener.fd());
      command.environment.emplace_back(kListenerVariable, std::to_string(listener.fd()));
    }
    return command;
  }

  std::vector<int> running() const {
    std::vector<int> numbers;
    for (const auto& rank : ranks_)
      if (rank->process.is_running()) numbers.push_back(rank->number);
    return numbers;
  }
  bool any_runs() const { return !running().empty(); }
  /// Sends a signal to all ranks, and SIGCONT, since stopped ranks (SIGSTOP) would not receive it.
  void send_all(int signal) {
    for (const auto& rank : ranks_) {
      rank->process.send(signal);
      rank->process.send(SIGCONT);
    }
  }

  /// Waits for a signal, output or the next deadline.
  void wait() {
    std::vector<pollfd> files = {{signals_.file(), POLLIN, 0}};
    for (const auto& rank : ranks_)
      for (const int file : {rank->process.output(), rank->reports.file()})
        if (file >= 0) files.push_back({file, POLLIN, 0});
    const Clock::time_point next = std::min(note_at_, act_at_);
    int timeout_ms = told_at_ ? 100 : -1;
    if (next != kForever) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
      timeout_ms = static_cast<int>(std::clamp<int64_t>(left, 0, told_at_ ? 100 : 60'000));
    }
    poll(files.data(), files.size(), timeout_ms);
  }

  void take_signal(const signalfd_siginfo& info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) return;  // reap() looks at all
    const bool is_of_terminal = number == SIGINT || number == SIGHUP;
    const bool from_terminal = is_of_terminal && info.ssi_code == SI_KERNEL;  // sent to the whole group
    if (!from_terminal) send_all(number);
    if (number != SIGINT || !is_prompt_) {
      tell(signal_name(number));
      if (told_signal_ == 0) told_signal_ = number;
    }
    if (number != SIGINT || is_prompt_ || isatty(STDIN_FILENO) == 0) return;
    const auto now = Clock::now();
    if (last_interrupt_ && now - *last_interrupt_ < kImpatient) end_at_once();
    last_interrupt_ = now;
  }

  /// Ends the ranks after a second Ctrl-C. Rank 0, which is at the terminal too, reports it and ends by
  /// itself.
  void end_at_once() {
    for (const auto& rank : ranks_)
      if (rank->number > 0) rank->process.send(SIGKILL);
    take_bad_end(0, static_cast<int>(ExitCode::kInterrupted), "was interrupted twice");
  }

  void show_output(Rank& rank) {
    std::array<char, 16 << 10> buffer;
    for (int i = 0; i < kReadsAtOnce && rank.process.output() >= 0; ++i) {
      const ssize_t n = read(rank.process.output(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return rank.process.close_output();
      to_stderr(rank.lines.add({buffer.data(), static_cast<size_t>(n)}));
    }
  }

  /// Prints the errors with which ranks ended: one of several ranks once, and none that rank 0 has printed.
  /// While others run, waits for the same error of rank 0.
  void show_errors() {
    for (const auto& rank : ranks_) {
      const std::string& error = rank->reports.error();
      const bool is_early = any_runs() && (!rank->ended_at || Clock::now() < *rank->ended_at + kSameError);
      if (error.empty() || rank->error_is_shown || (rank->number > 0 && is_early)) continue;
      rank->error_is_shown = true;
      if (shown_errors_.insert(error).second && rank->number > 0) to_stderr(rank->lines.add(error + "\n"));
    }
  }

  void reap() {
    for (const auto& rank : ranks_) {
      const std::optional<ChildEnd> end = rank->process.poll();
      if (end) rank->ended_at = Clock::now();
      if (!end || end->code == 0 || bad_ || rank->was_killed) continue;
      if (is_stop(*end)) {
        take_stop(rank->number, end->code);
      } else if (end->signal == 0) {
        take_bad_end(rank->number, end->code, fmt::format("ended with exit code {}", end->code));
      } else {
        const std::string how = "was killed by " + signal_name(end->signal);
        take_bad_end(rank->number, end->code, how);
        to_stderr(fmt::format(
            "[launch] rank {} {}{}; the same command resumes from the newest checkpoint\n", rank->number, how,
            end->signal == SIGKILL ? ": memory may have run out; `dmesg` shows whether it did" : ""));
      }
    }
  }

  /// Handles a rank that stopped with a checkpoint. The others save too, or hang: those that do neither have
  /// --grace to end.
  void take_stop(int rank, int code) {
    if (code_ == 0) code_ = code;
    expect_end_of_others(fmt::format("rank {} stopped with exit code {}", rank, code));
  }

  void take_bad_end(int rank, int code, const std::string& how) {
    if (bad_) return;
    bad_ = true;
    code_ = code;
    expect_end_of_others(fmt::format("rank {} {}", rank, how));
  }

  void expect_end_of_others(const std::string& why) {
    is_one_missing_ = true;
    if (told_at_ || !any_runs()) return;
    tell(why);
    note_at_ = Clock::now() + std::min<Clock::duration>(kNoteAfter, grace_ / 4);
    act_at_ = Clock::now() + grace_ / 2;
  }

  void keep_deadlines() {
    const auto now = Clock::now();
    const std::vector<int> left = running();
    if (left.empty()) return;
    const std::string others = fmt::format("rank{} {}", left.size() > 1 ? "s" : "", fmt::join(left, ", "));
    if (now >= note_at_) {
      note_at_ = kForever;
      to_stderr(
          fmt::format("[launch] {}; {} must end within {} (--grace)\n", told_by_, others, grace_text()));
    }
    if (now < act_at_) return;
    act_at_ = kForever;
    to_stderr(fmt::format("[launch] ending {} (SIGTERM)\n", others));
    send_all(SIGTERM);
  }

  /// Starts the time that ranks have to end, at the first reason.
  void tell(const std::string& why) {
    if (!told_at_) told_at_ = Clock::now(), told_by_ = why;
  }

  std::string grace_text() const {
    return fmt::format("{:g} s", std::chrono::duration<double>(grace_).count());
  }

  /// Kills the ranks that did not end in time and are not saving.
  void kill_late_ranks() {
    if (!told_at_) return;
    for (const auto& rank : ranks_) {
      if (rank->was_killed || !rank->process.is_running()) continue;
      if (Clock::now() < *told_at_ + grace_ + rank->reports.allowance(!is_one_missing_)) continue;
      const std::string phase = rank->reports.phase();
      to_stderr(fmt::format("[launch] rank {} did not end within {} (--grace) after {}{}: killed (SIGKILL)\n",
                            rank->number, grace_text(), told_by_, phase.empty() ? "" : ", " + phase));
      rank->was_killed = true;
      rank->process.send(SIGKILL);
      if (code_ == 0) code_ = 128 + told_signal_;
    }
  }

  Clock::duration grace_;
  bool is_prompt_;
  SignalQueue signals_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::optional<Clock::time_point> last_interrupt_;
  bool bad_ = false, is_one_missing_ = false;
  int code_ = 0;
  std::optional<Clock::time_point> told_at_;  // time of the first reason to end
  std::string told_by_;                       // "SIGTERM", "rank 1 ended with exit code 12"
  int told_signal_ = 0;
  std::set<std::string> shown_errors_;
  Clock::time_point note_at_ = kForever, act_at_ = kForever;
};

}  // namespace

int run_local_ranks(const LocalRanks& what) { return Watch(what).run(); }

}  // namespace tycho
