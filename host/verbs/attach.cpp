// tycho attach: a prompt inside a running run.
#include <unistd.h>

#include <iostream>

#include "host/repl/line_editor.h"
#include "host/verb.h"
#include "trainer/control/channel.h"

namespace tycho {

const VerbSpec kAttachSpec = {
    "attach RUN",
    "A prompt in a running run: every line of Lua is answered between two steps.",
    "  tycho attach runs/demo                          # ctx, model, opt, sched, data, ckpt, mem, r\n"
    "  tycho attach runs/demo --control                # cmd too: cmd.set_lr(2e-4)\n"
    "  tycho attach runs/demo -e 'ctx.loss'",
    {{"control", "Let lines command the run."}, {"e,eval", "Run one line and leave.", "CODE"}}};

namespace {

/// Prints what came back; false when the run said no.
bool ask(ControlClient& client, const std::string& code, bool control) {
  const ControlAnswer answer = client.ask(code, control);
  if (!answer.text.empty()) fmt::print("{}\n", answer.text);
  std::fflush(stdout);
  return answer.ok;
}

void read_terminal(ControlClient& client, bool control) {
  LineEditor editor([](const std::string&) { return Completions(); });
  std::string line;
  for (;;) {
    const LineEditor::End end = editor.read("run> ", line);
    if (end == LineEditor::End::kClosed) return;
    if (end == LineEditor::End::kInterrupted || line.find_first_not_of(" \t") == std::string::npos) continue;
    editor.remember(line);
    ask(client, line, control);
  }
}

/// Lines of a file or a pipe; false when one failed.
bool read_pipe(ControlClient& client, bool control) {
  for (std::string line; std::getline(std::cin, line);)
    if (line.find_first_not_of(" \t") != std::string::npos && !ask(client, line, control)) return false;
  return true;
}

}  // namespace

int run_attach(const Arguments& arguments) {
  ControlClient client(word(arguments, 0, "the folder of a run"));
  no_more_words(arguments, 1);
  const bool control = arguments.has("control");
  bool ok = true;
  if (arguments.has("eval"))
    ok = ask(client, arguments.text("eval"), control);
  else if (isatty(STDIN_FILENO) != 0)
    read_terminal(client, control);
  else
    ok = read_pipe(client, control);
  return ok ? 0 : static_cast<int>(ExitCode::kRecipe);
}

}  // namespace tycho
