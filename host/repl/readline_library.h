// GNU readline, opened when a person is at a prompt. It is under the GPL and no part of this program or its
// packages: the prompt works without it, and it is the system's.
#pragma once
#include <cstdio>

#include <readline/history.h>
#include <readline/readline.h>

namespace tycho {

/// The functions and variables of readline that are used here.
struct ReadlineLibrary {
  decltype(&::rl_callback_handler_install) callback_handler_install = nullptr;
  decltype(&::rl_callback_handler_remove) callback_handler_remove = nullptr;
  decltype(&::rl_callback_read_char) callback_read_char = nullptr;
  decltype(&::rl_callback_sigcleanup) callback_sigcleanup = nullptr;
  decltype(&::rl_free_line_state) free_line_state = nullptr;
  decltype(&::rl_on_new_line) on_new_line = nullptr;
  decltype(&::rl_replace_line) replace_line = nullptr;
  decltype(&::rl_forced_update_display) forced_update_display = nullptr;
  decltype(&::rl_bind_key_in_map) bind_key_in_map = nullptr;
  decltype(&::rl_get_keymap_by_name) get_keymap_by_name = nullptr;
  decltype(&::using_history) start_history = nullptr;
  decltype(&::add_history) extend_history = nullptr;
  decltype(&::rl_readline_name) program_name = nullptr;
  decltype(&::rl_outstream) outstream = nullptr;
  decltype(&::rl_catch_signals) catch_signals = nullptr;
  decltype(&::rl_line_buffer) line_buffer = nullptr;
  decltype(&::rl_point) point = nullptr;
  decltype(&::rl_end) end = nullptr;
  decltype(&::rl_attempted_completion_function) attempted_completion_function = nullptr;
  decltype(&::rl_attempted_completion_over) attempted_completion_over = nullptr;
  decltype(&::rl_completion_append_character) completion_append_character = nullptr;
  decltype(&::rl_filename_completion_desired) filename_completion_desired = nullptr;
  decltype(&::rl_basic_word_break_characters) basic_word_break_characters = nullptr;
  decltype(&::rl_completer_quote_characters) completer_quote_characters = nullptr;
};

/// Opens the library at the first call. Returns nullptr when this system has none, and says once on stderr
/// which package has it.
const ReadlineLibrary* readline_library();

}  // namespace tycho
