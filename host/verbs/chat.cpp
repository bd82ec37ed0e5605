// tycho chat: a conversation with a trained model.
#include <unistd.h>

#include <iostream>

#include "host/chat/conversation.h"
#include "host/engine.h"
#include "host/repl/line_editor.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/error.h"

namespace tycho {

const VerbSpec kChatSpec = {
    "chat RUN_OR_FOLDER",
    "Talks with a trained model: a run, a checkpoint or a Hugging Face folder. /help lists the commands of a "
    "conversation. Reads a pipe, too: one message per line, answers on stdout.",
    "  tycho chat runs/tuned\n"
    "  tycho chat ~/models/Llama-3.2-1B-Instruct -t 0.7 --system 'Answer in one sentence.'\n"
    "  printf 'Hello\\nAnd then?\\n' | tycho chat runs/tuned -t 0",
    {{"system", "System message at the beginning.", "TEXT", ""},
     {"template",
      "How messages become text: chatml, llama3, a .jinja file, or none, which lets the model continue what "
      "you write. Default: the model's own, and none if it has none.",
      "NAME", ""},
     {"n,max-tokens", "Maximum number of tokens of an answer.", "N", "512"},
     {"t,temperature", "0 always takes the most likely token.", "X", "1"},
     {"top-k", "Choose among the K most likely; 0 for all.", "K", "0"},
     {"top-p", "Choose among the most likely whose probabilities sum to P.", "P", "1"},
     {"repetition-penalty", "Above 1, tokens already seen become less likely.", "X", "1"},
     {"stop", "End an answer before this text; can be given several times.", "TEXT"},
     {"seed", "The same seed gives the same answers.", "N", "0"},
     {"tokenizer", "A tokenizer.json; default: the model's own.", "FILE", ""},
     kEmaOption,
     {"threads", "CPU threads; 0 for one per core.", "N", "0"},
     {"device", "auto, cpu or cuda.", "NAME", "auto"}}};

namespace {

ChatRequest request_of(const Arguments& arguments) {
  ChatRequest request;
  request.path = word(arguments, 0, "a run folder, a checkpoint or a Hugging Face folder");
  no_more_words(arguments, 1);
  request.tokenizer = arguments.text("tokenizer");
  request.chat_template = arguments.text("template");
  const std::string& name = request.chat_template;
  if (!name.empty() && name != "chatml" && name != "llama3" && name != "none" && !name.ends_with(".jinja"))
    fail(ExitCode::kUsage,
         "[chat] --template expected chatml, llama3, none or the path of a .jinja file, got \"{}\"", name);
  request.ema = arguments.has("ema");
  request.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  request.device = arguments.text("device");
  return request;
}

ChatOptions options_of(const Arguments& arguments) {
  ChatOptions options;
  options.max_tokens = arguments.integer("max-tokens", 1);
  options.temperature = arguments.number("temperature", 0, 1e6);
  options.top_k = arguments.integer("top-k", 0);
  options.top_p = arguments.number("top-p", 0, 1);
  options.repetition_penalty = arguments.number("repetition-penalty", 1e-3, 1e3);
  options.stop = arguments.all("stop");
  for (const std::string& stop : options.stop)
    if (stop.empty()) fail(ExitCode::kUsage, "[chat] --stop expected a text, got an empty one");
  options.seed = static_cast<uint64_t>(arguments.integer("seed", 0));
  return options;
}

void print_start(const ChatFacts& facts) {
  fmt::print(stderr, "{}, {}, up to {} tokens; /help lists commands\n", facts.place,
             facts.is_plain ? "without a chat template" : facts.chat_template, facts.longest);
  if (facts.is_plain)
    fmt::print(
        stderr,
        "it has no chat template, so it continues what you write; --template chatml gives messages roles\n");
}

Completions complete(const std::string& line) {
  Completions found;
  for (const auto& [command, what] : chat_commands()) {
    const std::string name = command.substr(0, command.find(' '));
    if (!line.empty() && name.starts_with(line)) found.words.push_back(name);
  }
  return found;
}

/// Talks with a person at a terminal. An error ends a message and not the conversation.
int talk_at_terminal(Conversation& conversation) {
  InterruptRepl interrupt(/*prompting=*/true);
  LineEditor editor(complete);
  for (;;) {
    std::string line;
    const LineEditor::End end = editor.read(conversation.is_open() ? "... " : ">>> ", line);
    if (end == LineEditor::End::kClosed) return fmt::print("\n"), 0;
    if (end == LineEditor::End::kInterrupted) continue;
    if (!line.empty()) editor.remember(line);
    try {
      if (!conversation.take(line, interrupt.stop())) return 0;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kUsage && error.code() != ExitCode::kUnusable) throw;
      fmt::print(stderr, "{}\n", error.what());
    }
    take_interrupt();
  }
}

int talk_with_pipe(Conversation& conversation) {
  const StopFlag& stop = stop_on_signals();
  for (std::string line; std::getline(std::cin, line);) {
    const bool goes_on = conversation.take(line, stop);
    if (stop != 0) return 128 + stop;
    if (!goes_on) return 0;
  }
  if (conversation.is_open()) conversation.finish(stop);
  return stop != 0 ? 128 + stop : 0;
}

}  // namespace

int run_chat(const Arguments& arguments) {
  const ChatRequest request = request_of(arguments);
  const ChatOptions options = options_of(arguments);
  const std::unique_ptr<ChatSession> session = open_engine(request.threads).open_chat(request);
  const bool is_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (is_terminal || session->facts().is_plain) print_start(session->facts());
  Conversation conversation(*session, options, arguments.text("system"));
  return is_terminal ? talk_at_terminal(conversation) : talk_with_pipe(conversation);
}

}  // namespace tycho
