// The loops that read entries.
#include "host/repl/repl.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "host/engine.h"
#include "host/repl/json_lines.h"
#include "host/repl/line_editor.h"
#include "host/repl/prompt.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "trainer/metrics/reporter.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {
namespace {

constexpr double kYear_s = 365 * 24 * 3600.0;  // for people who think

bool of_a_person(const ReplOptions& options) {
  return options.entries.empty() && !options.json && isatty(STDIN_FILENO) != 0;
}

void to_stdout(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Returns true when the prompt may be left; asks once when a run is open.
bool may_leave(const Prompt& prompt, bool& asked) {
  if (!prompt.is_open() || asked) return true;
  asked = true;
  std::printf("a run is open at step %lld; trainer:save() saves it. ^D again leaves\n",
              static_cast<long long>(prompt.step()));
  return false;
}

/// Runs entries of a person. Returns the exit code.
int converse(Prompt& prompt) {
  LineEditor editor([&](const std::string& line) { return prompt.complete(line); });
  for (const std::string& entry : prompt.history().earlier()) editor.remember(entry);
  std::string text, line;
  bool asked = false;  // whether to leave an open run
  for (;;) {
    const LineEditor::End end = editor.read(text.empty() ? "> " : ">> ", line);
    if (end == LineEditor::End::kInterrupted) {
      text.clear();
      continue;
    }
    if (end == LineEditor::End::kClosed) {
      std::printf("\n");
      if (!may_leave(prompt, asked)) continue;
      return 0;
    }
    text += (text.empty() ? "" : "\n") + line;
    const double begun = monotonic_seconds();
    const EntryEnd answer = prompt.enter(text);
    if (answer.status == "incomplete") continue;
    if (text.find_first_not_of(" \t\n") != std::string::npos) {
      editor.remember(text);
      prompt.history().add(text, monotonic_seconds() - begun);
    }
    text.clear();
    if (answer.status != "quit")
      asked = false;
    else if (may_leave(prompt, asked))
      return 0;
  }
}

/// Runs entries of a script. Ends at the first error.
int run_script(Prompt& prompt, std::istream& in) {
  std::string text;
  for (std::string line; std::getline(in, line);) {
    text += (text.empty() ? "" : "\n") + line;
    const EntryEnd answer = prompt.enter(text);
    if (answer.status == "incomplete") continue;
    text.clear();
    if (answer.status == "quit") return 0;
    if (answer.status == "error") return answer.exit;
  }
  if (text.empty()) return 0;
  std::fputs("[repl] the script ends inside an entry\n", stderr);
  return static_cast<int>(ExitCode::kRecipe);
}

int read_entries(Prompt& prompt, const ReplOptions& options, bool interactive) {
  if (interactive) return converse(prompt);
  if (options.entries.empty()) return run_script(prompt, std::cin);
  for (const std::string& entry : options.entries) {
    std::istringstream lines(entry);
    if (const int code = run_script(prompt, lines); code != 0) return code;
  }
  return 0;
}

void print_banner(const RankInfo& place) {
  const std::string rank =
      place.num_ranks > 1 ? fmt::format("rank {}/{}  ", place.rank, place.num_ranks) : "";
  fmt::print("tycho {}  LuaJIT, interpreted  {}    ?help  ;shell  :commands  ^D ends\n", TYCHO_VERSION, rank);
  std::fflush(stdout);  // meeting the other ranks may take a while
}

int run_loop(const ReplOptions& options, std::optional<FailedRun> failed, InStep* ranks) {
  const bool reads = ranks == nullptr || ranks->rank() == 0;
  bool interactive = reads && of_a_person(options);
  if (ranks != nullptr) interactive = ranks->hear(interactive);
  if (interactive) never_wait_for_readers();
  JsonLines json;
  const auto to_json = [&](std::string_view text) { json.output(text); };
  Prompt prompt(options, {.interactive = interactive,
                          .mends_recipe = interactive || options.json,
                          .prompting = interactive || options.json || !reads,
                          .apart = options.json,
                          .redraws = reads && interactive && isatty(STDOUT_FILENO) != 0 && can_redraw(),
                          .sink = options.json ? ReplOutput::Sink(to_json) : to_stdout,
                          .ranks = ranks});
  const Prompt::Start start = prompt.start();
  if (start.exit != 0) return start.exit;
  if (failed) prompt.look_at(std::move(*failed));
  if (!reads) return prompt.follow();
  if (!options.json) std::fputs(start.text.c_str(), interactive ? stdout : stderr);
  const int code = options.json ? json.serve(prompt, start) : read_entries(prompt, options, interactive);
  prompt.leave(code);
  return prompt.lost_ranks() ? static_cast<int>(ExitCode::kTerminated) : code;
}

InStep meet(const RankInfo& place) {
  StopWait wait;
  return InStep(open_engine(threads_of_rank(0, place)), place, kYear_s, wait.stop());
}

}  // namespace

int run_repl_loop(const ReplOptions& options) {
  if (options.place.rank == 0 && of_a_person(options)) print_banner(options.place);
  if (options.place.num_ranks == 1) return run_loop(options, std::nullopt, nullptr);
  InStep ranks = meet(options.place);
  return run_loop(options, std::nullopt, &ranks);
}

int run_repl_loop(const ReplOptions& options, FailedRun failed) {
  InStep* ranks = failed.ranks;
  if (ranks == nullptr || ranks->rank() == 0) print_banner(options.place);
  return run_loop(options, std::move(failed), ranks);
}

}  // namespace tycho
