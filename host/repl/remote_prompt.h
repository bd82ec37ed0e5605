// What a prompt can do locally when its entries run in another process: help, completion, and where an entry
// ends.
#pragma once
#include <string>

#include "bindings/define/lua_util.h"
#include "bindings/run/objects.h"
#include "host/repl/history.h"
#include "host/repl/host_functions.h"
#include "host/repl/line_editor.h"
#include "host/repl/output.h"

namespace tycho {

/// Owned by one thread.
class RemotePrompt {
 public:
  /// `may_command` is true when ctx has cmd.
  explicit RemotePrompt(bool may_command);
  RemotePrompt(const RemotePrompt&) = delete;
  RemotePrompt& operator=(const RemotePrompt&) = delete;

  /// Returns the help page of a name: an object of the run, a member of one, a key of recipes.
  std::string help(const std::string& name);
  /// Returns true when further lines could complete the text.
  bool is_incomplete(const std::string& text);
  Completions complete(const std::string& line);

 private:
  /// Calls a method of tycho.repl with one string.
  void call(const char* method, const std::string& text, int num_results);

  Objects objects_;  // used by finalisers of the state
  ReplHistory history_;
  ReplOutput output_;
  ReplHost host_;
  LuaState state_;
};

}  // namespace tycho
