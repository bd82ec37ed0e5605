// Opens libreadline.so.8 by name: Debian 12 and 13, Ubuntu 22.04 and 24.04 and RHEL 9 have that one.
#include "host/repl/readline_library.h"

#include <dlfcn.h>

#include <optional>

namespace tycho {
namespace {

template <class Symbol>
bool find(void* library, const char* name, Symbol& symbol) {
  symbol = reinterpret_cast<Symbol>(::dlsym(library, name));
  return symbol != nullptr;
}

std::optional<ReadlineLibrary> open_library() {
  void* library = ::dlopen("libreadline.so.8", RTLD_NOW | RTLD_LOCAL);
  ReadlineLibrary lines;
  if (library != nullptr &&  //
      find(library, "rl_callback_handler_install", lines.callback_handler_install) &&
      find(library, "rl_callback_handler_remove", lines.callback_handler_remove) &&
      find(library, "rl_callback_read_char", lines.callback_read_char) &&
      find(library, "rl_callback_sigcleanup", lines.callback_sigcleanup) &&
      find(library, "rl_free_line_state", lines.free_line_state) &&
      find(library, "rl_on_new_line", lines.on_new_line) &&
      find(library, "rl_replace_line", lines.replace_line) &&
      find(library, "rl_forced_update_display", lines.forced_update_display) &&
      find(library, "rl_bind_key_in_map", lines.bind_key_in_map) &&
      find(library, "rl_get_keymap_by_name", lines.get_keymap_by_name) &&
      find(library, "using_history", lines.start_history) &&
      find(library, "add_history", lines.extend_history) &&
      find(library, "rl_readline_name", lines.program_name) &&
      find(library, "rl_outstream", lines.outstream) &&
      find(library, "rl_catch_signals", lines.catch_signals) &&
      find(library, "rl_line_buffer", lines.line_buffer) && find(library, "rl_point", lines.point) &&
      find(library, "rl_end", lines.end) &&
      find(library, "rl_attempted_completion_function", lines.attempted_completion_function) &&
      find(library, "rl_attempted_completion_over", lines.attempted_completion_over) &&
      find(library, "rl_completion_append_character", lines.completion_append_character) &&
      find(library, "rl_filename_completion_desired", lines.filename_completion_desired) &&
      find(library, "rl_basic_word_break_characters", lines.basic_word_break_characters) &&
      find(library, "rl_completer_quote_characters", lines.completer_quote_characters))
    return lines;
  std::fputs(
      "[prompt] expected libreadline.so.8 for history, completion and editing, got none: this prompt reads "
      "plain "
      "lines; install libreadline8 (Debian, Ubuntu) or readline (RHEL)\n",
      stderr);
  return std::nullopt;
}

}  // namespace

const ReadlineLibrary* readline_library() {
  static const std::optional<ReadlineLibrary> library = open_library();
  return library ? &*library : nullptr;
}

}  // namespace tycho
