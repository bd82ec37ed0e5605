// readline's callback interface: the loop is ours, so that Ctrl-C is.
#include "host/repl/line_editor.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "host/repl/plain_line.h"
#include "host/repl/readline_library.h"
#include "host/signals.h"
#include "trainer/base/environment.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

// readline calls back without a context.
struct Shared {
  const ReadlineLibrary* readline;  // nullptr: this system has none
  Completer completer;
  bool done = false, closed = false;
  std::string line;
  std::string buffered;  // without readline: bytes after the newest line
};
Shared* g_shared = nullptr;

void on_line(char* line) {
  g_shared->done = true;
  g_shared->closed = line == nullptr;
  g_shared->line = line != nullptr ? line : "";
  std::free(line);
  g_shared->readline->callback_handler_remove();
}

/// Returns candidates in readline's form: their common beginning first, everything from malloc.
char** complete(const char* text, int start, int) {
  const ReadlineLibrary& readline = *g_shared->readline;
  *readline.attempted_completion_over = 1;
  *readline.completion_append_character = '\0';
  *readline.filename_completion_desired = 0;
  const std::string before(*readline.line_buffer, static_cast<size_t>(*readline.point));
  Completions found = g_shared->completer(before);
  if (!found.hint.empty()) {
    std::printf("\n%s\n", found.hint.c_str());
    readline.on_new_line();
  }
  // A candidate stands for the last word of our grammar, which may be longer or shorter than readline's.
  const std::string word = text;
  std::vector<std::string> words;
  for (const std::string& candidate : found.words) {
    for (size_t keep = std::min(candidate.size(), before.size()); keep + 1 > 0; --keep) {
      if (before.compare(before.size() - keep, keep, candidate, 0, keep) != 0) continue;
      const size_t word_begin = before.size() - keep;
      if (word_begin >= static_cast<size_t>(start))
        words.push_back(before.substr(static_cast<size_t>(start), word_begin - static_cast<size_t>(start)) +
                        candidate);
      else
        words.push_back(candidate.substr(static_cast<size_t>(start) - word_begin));
      break;
    }
  }
  if (words.empty()) return nullptr;
  size_t common = words[0].size();
  for (const std::string& one : words) {
    size_t same = 0;
    while (same < common && same < one.size() && one[same] == words[0][same]) ++same;
    common = same;
  }
  auto** list = static_cast<char**>(std::malloc((words.size() + 2) * sizeof(char*)));
  list[0] = strdup(words[0].substr(0, common).c_str());
  if (words.size() == 1) {
    list[1] = nullptr;
    return list;
  }
  for (size_t i = 0; i < words.size(); ++i) list[i + 1] = strdup(words[i].c_str());
  list[words.size() + 1] = nullptr;
  return list;
}

/// Edits the line in $VISUAL or $EDITOR (^X^E).
int edit_outside(int, int) {
  char path[] = "/tmp/tycho-entry-XXXXXX.lua";
  const int fd = mkstemps(path, 4);
  if (fd < 0) return 1;
  const ReadlineLibrary& readline = *g_shared->readline;
  const ssize_t ignored = write(fd, *readline.line_buffer, static_cast<size_t>(*readline.end));
  static_cast<void>(ignored);
  close(fd);
  std::string editor = first_environment_variable({"VISUAL", "EDITOR"});
  if (editor.empty()) editor = "vi";
  const int status = std::system((editor + " " + path).c_str());
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  unlink(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (status == 0) readline.replace_line(text.c_str(), 0);
  *readline.point = *readline.end;
  readline.forced_update_display();
  return 0;
}

}  // namespace

LineEditor::LineEditor(Completer completer) {
  const ReadlineLibrary* readline = readline_library();
  g_shared = new Shared{.readline = readline, .completer = std::move(completer)};
  if (readline == nullptr) return;
  *readline->program_name = "tycho";
  // The editor's own control sequences, which stdout would not let through.
  static FILE* const terminal = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), "w");
  *readline->outstream = terminal;
  *readline->catch_signals = 0;
  *readline->attempted_completion_function = &complete;
  *readline->basic_word_break_characters = " \t\n\"'`@$><=;|&{}(),+-*/%^#~[]";
  *readline->completer_quote_characters = "";
  readline->bind_key_in_map(CTRL('E'), &edit_outside, readline->get_keymap_by_name("emacs-ctlx"));
  readline->start_history();
}

LineEditor::~LineEditor() {
  if (g_shared->readline != nullptr) g_shared->readline->callback_handler_remove();
  delete g_shared;
  g_shared = nullptr;
}

LineEditor::End LineEditor::read(const std::string& prompt, std::string& line) {
  const ReadlineLibrary* readline = g_shared->readline;
  if (readline == nullptr) return read_plain(prompt, line);
  g_shared->done = false;
  readline->callback_handler_install(prompt.c_str(), &on_line);
  while (!g_shared->done) {
    if (take_interrupt()) {
      std::printf("^C\n");
      std::fflush(stdout);
      readline->free_line_state();
      readline->callback_sigcleanup();
      readline->callback_handler_remove();
      return End::kInterrupted;
    }
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, -1);
    if (ready < 0 && errno != EINTR) return End::kClosed;
    if (ready > 0) readline->callback_read_char();
  }
  line = g_shared->line;
  return g_shared->closed ? End::kClosed : End::kLine;
}

LineEditor::End LineEditor::read_plain(const std::string& prompt, std::string& line) {
  std::fputs(prompt.c_str(), stdout);
  std::fflush(stdout);
  const End end = read_plain_line(STDIN_FILENO, g_shared->buffered, take_interrupt, line);
  if (end == End::kInterrupted) std::printf("\n");  // the terminal has shown ^C
  return end;
}

void LineEditor::remember(const std::string& entry) {
  if (g_shared->readline != nullptr) g_shared->readline->extend_history(entry.c_str());
}

}  // namespace tycho
