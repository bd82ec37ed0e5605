// tycho attach: a prompt inside a live run.
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "host/repl/line_editor.h"
#include "host/repl/remote_prompt.h"
#include "host/verb.h"
#include "trainer/control/channel.h"

namespace tycho {

const VerbSpec kAttachSpec = {
    "attach RUN",
    "Opens a prompt in a live run: each Lua entry is evaluated between two steps.",
    "  tycho attach runs/demo                          # ctx, model, opt, sched, data, ckpt, mem, r\n"
    "  tycho attach runs/demo --control                # cmd too: cmd.set_lr(2e-4)\n"
    "  tycho attach runs/demo -e 'ctx.loss' -e 'opt.lr'",
    {{"control", "Let entries change the run with commands."},
     {"e,eval", "Run this entry and exit; can be given several times.", "CODE"}}};

namespace {

constexpr const char* kOverview =
    "An entry is Lua, run between two steps: an expression prints its value, x = 1 stays defined.\n"
    "  ctx             numbers of the newest step: ctx.loss, ctx.step, ctx.tokens_per_s\n"
    "  model opt sched data ckpt log mem profile   the objects of the run;  ?model  lists what one has\n"
    "  cmd             with --control: cmd.set_lr(2e-4), cmd.save \"name\", cmd.stop()\n"
    "  r               the recipe: r.optimizer.lr;  ?optimizer.lr  explains a key\n"
    "First character:  ?name help    ^D leaves; the run continues\n";

/// Sends entries to a run, and answers locally what needs no run.
class Attached {
 public:
  Attached(const std::string& run_dir, bool may_command)
      : client_(run_dir), prompt_(may_command), may_command_(may_command) {}

  bool is_incomplete(const std::string& text) {
    return !is_help(text) && !is_command(text) && prompt_.is_incomplete(text);
  }
  Completions complete(const std::string& line) { return prompt_.complete(line); }

  /// Prints the answer. Returns false when the run refused the entry.
  bool ask(const std::string& text) {
    if (is_help(text)) return print_help(text.substr(text.find('?') + 1));
    if (is_command(text)) return refuse_command(text);
    const ControlAnswer answer = client_.ask(text, may_command_);
    if (!answer.text.empty()) fmt::print("{}\n", answer.text);
    std::fflush(stdout);
    return answer.ok;
  }

 private:
  static bool starts_with(const std::string& text, char key) {
    const size_t at = text.find_first_not_of(" \t");
    return at != std::string::npos && text[at] == key;
  }
  static bool is_help(const std::string& text) { return starts_with(text, '?'); }
  static bool is_command(const std::string& text) { return starts_with(text, ':') || starts_with(text, ';'); }

  bool print_help(const std::string& name) {
    if (name.find_first_not_of(" \t") == std::string::npos)
      fmt::print("{}", kOverview);
    else
      fmt::print("{}\n", prompt_.help(name));
    std::fflush(stdout);
    return true;
  }

  static bool refuse_command(const std::string& text) {
    fmt::print("{}  works only in  tycho repl;  here entries are Lua; ?  lists what is available\n", text);
    std::fflush(stdout);
    return false;
  }

  ControlClient client_;
  RemotePrompt prompt_;
  bool may_command_;
};

void read_terminal(Attached& run) {
  LineEditor editor([&](const std::string& line) { return run.complete(line); });
  std::string text, line;
  for (;;) {
    const LineEditor::End end = editor.read(text.empty() ? "run> " : "run>> ", line);
    if (end == LineEditor::End::kClosed) return;
    if (end == LineEditor::End::kInterrupted) {
      text.clear();
      continue;
    }
    text += (text.empty() ? "" : "\n") + line;
    if (text.find_first_not_of(" \t\n") == std::string::npos) text.clear();
    if (text.empty() || run.is_incomplete(text)) continue;
    editor.remember(text);
    run.ask(text);
    text.clear();
  }
}

/// Sends the entries of a file or a pipe. Returns false when one failed.
bool read_stream(Attached& run, std::istream& in) {
  std::string text;
  for (std::string line; std::getline(in, line);) {
    text += (text.empty() ? "" : "\n") + line;
    if (text.find_first_not_of(" \t\n") == std::string::npos) text.clear();
    if (text.empty() || run.is_incomplete(text)) continue;
    if (!run.ask(text)) return false;
    text.clear();
  }
  if (text.empty()) return true;
  fmt::print(stderr, "[attach] the input ends inside an entry\n");
  return false;
}

bool read_entries(Attached& run, const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    std::istringstream lines(entry);
    if (!read_stream(run, lines)) return false;
  }
  return true;
}

}  // namespace

int run_attach(const Arguments& arguments) {
  const std::string& run_dir = word(arguments, 0, "the folder of a run");
  no_more_words(arguments, 1);
  Attached run(run_dir, arguments.has("control"));
  bool ok = true;
  if (arguments.has("eval"))
    ok = read_entries(run, arguments.all("eval"));
  else if (isatty(STDIN_FILENO) != 0)
    read_terminal(run);
  else
    ok = read_stream(run, std::cin);
  return ok ? 0 : static_cast<int>(ExitCode::kRecipe);
}

}  // namespace tycho
