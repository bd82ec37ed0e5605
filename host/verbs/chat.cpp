// tycho chat: a conversation with a trained model.
#include <unistd.h>

#include <iostream>

#include "host/chat/conversation.h"
#include "host/engine.h"
#include "host/repl/line_editor.h"
#include "host/sampling_options.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/error.h"

namespace tycho {

const VerbSpec kChatSpec = {
    "chat RUN_OR_FOLDER",
    "Talks with a trained model: a run, a checkpoint, a Hugging Face folder or a model of the hub. /help "
    "lists the commands of a "
    "conversation. Reads a pipe, too: one message per line, answers on stdout.",
    "  tycho chat runs/tuned\n"
    "  tycho chat hf://Qwen/Qwen3-0.6B -t 0.7\n"
    "  tycho chat ~/models/Llama-3.2-1B-Instruct -t 0.7 --system 'Answer in one sentence.'\n"
    "  printf 'Hello\\nAnd then?\\n' | tycho chat runs/tuned -t 0",
    {{"system", "System message at the beginning.", "TEXT", ""},
     {"template",
      "How messages become text: chatml, llama3, a .jinja file, or none, which lets the model continue what "
      "you write. Default: the model's own, and none if it has none.",
      "NAME", ""},
     {"n,max-tokens", "Maximum number of tokens of an answer.", "N", "512"},
     kTemperatureOption,
     kTopKOption,
     kTopPOption,
     kRepetitionPenaltyOption,
     kStopOption,
     kSeedOption,
     {"tokenizer", "A tokenizer.json; default: the model's own.", "FILE", ""},
     kEmaOption,
     {"threads", "CPU threads; 0 for one per core.", "N", "0"},
     {"device", "auto, cpu or cuda.", "NAME", "auto"}}};

namespace {

ChatRequest request_of(const Arguments& arguments) {
  ChatRequest request;
  request.path = word(arguments, 0, kTrainedModel);
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
  ChatOptions options;
  read_sampling(arguments, options);
  const std::unique_ptr<ChatSession> session = open_engine(request.threads).open_chat(request);
  const bool is_terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (is_terminal || session->facts().is_plain) print_start(session->facts());
  Conversation conversation(*session, options, arguments.text("system"));
  return is_terminal ? talk_at_terminal(conversation) : talk_with_pipe(conversation);
}

}  // namespace tycho
