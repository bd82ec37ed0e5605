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

#include <readline/history.h>
#include <readline/readline.h>

#include "host/signals.h"
#include "trainer/base/environment.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

// readline calls back without a context.
struct Shared {
  Completer completer;
  bool done = false, closed = false;
  std::string line;
};
Shared* g_shared = nullptr;

void on_line(char* line) {
  g_shared->done = true;
  g_shared->closed = line == nullptr;
  g_shared->line = line != nullptr ? line : "";
  std::free(line);
  rl_callback_handler_remove();
}

/// Returns candidates in readline's form: their common beginning first, everything from malloc.
char** complete(const char* text, int start, int) {
  rl_attempted_completion_over = 1;
  rl_completion_append_character = '\0';
  rl_filename_completion_desired = 0;
  const std::string before(rl_line_buffer, static_cast<size_t>(rl_point));
  Completions found = g_shared->completer(before);
  if (!found.hint.empty()) {
    std::printf("\n%s\n", found.hint.c_str());
    rl_on_new_line();
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
  const ssize_t ignored = write(fd, rl_line_buffer, static_cast<size_t>(rl_end));
  static_cast<void>(ignored);
  close(fd);
  std::string editor = first_environment_variable({"VISUAL", "EDITOR"});
  if (editor.empty()) editor = "vi";
  const int status = std::system((editor + " " + path).c_str());
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  unlink(path);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (status == 0) rl_replace_line(text.c_str(), 0);
  rl_point = rl_end;
  rl_forced_update_display();
  return 0;
}

}  // namespace

LineEditor::LineEditor(Completer completer) {
  g_shared = new Shared{.completer = std::move(completer)};
  rl_readline_name = "tycho";
  // The editor's own control sequences, which stdout would not let through.
  static FILE* const terminal = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), "w");
  rl_outstream = terminal;
  rl_catch_signals = 0;
  rl_attempted_completion_function = &complete;
  rl_basic_word_break_characters = " \t\n\"'`@$><=;|&{}(),+-*/%^#~[]";
  rl_completer_quote_characters = "";
  rl_bind_key_in_map(CTRL('E'), &edit_outside, rl_get_keymap_by_name("emacs-ctlx"));
  using_history();
}

LineEditor::~LineEditor() {
  rl_callback_handler_remove();
  delete g_shared;
  g_shared = nullptr;
}

LineEditor::End LineEditor::read(const std::string& prompt, std::string& line) {
  g_shared->done = false;
  rl_callback_handler_install(prompt.c_str(), &on_line);
  while (!g_shared->done) {
    if (take_interrupt()) {
      std::printf("^C\n");
      std::fflush(stdout);
      rl_free_line_state();
      rl_callback_sigcleanup();
      rl_callback_handler_remove();
      return End::kInterrupted;
    }
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = poll(&input, 1, -1);
    if (ready < 0 && errno != EINTR) return End::kClosed;
    if (ready > 0) rl_callback_read_char();
  }
  line = g_shared->line;
  return g_shared->closed ? End::kClosed : End::kLine;
}

void LineEditor::remember(const std::string& entry) { add_history(entry.c_str()); }

}  // namespace tycho
