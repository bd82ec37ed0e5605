// One prompt: its Lua state, the run that is open in it, and the ranks that evaluate its entries together.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/define/lua_util.h"
#include "bindings/run/lua_callbacks.h"
#include "bindings/run/objects.h"
#include "host/repl/history.h"
#include "host/repl/host_functions.h"
#include "host/repl/in_step.h"
#include "host/repl/line_editor.h"
#include "host/repl/output.h"
#include "host/repl/repl.h"
#include "host/signals.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/session/session.h"

namespace tycho {

inline constexpr int64_t kPromptBytes = int64_t{1}
                                        << 30;  // limit of Lua's memory, for people who inspect a lot

/// The kind of reader at a prompt, and the sink of its text.
struct PromptSeat {
  bool interactive = false;   // a person reads: reports are shortened to fit the screen
  bool mends_recipe = false;  // a broken recipe or lost ranks do not end the prompt
  bool prompting = false;     // Ctrl-C between entries goes to the reader and does not end the process
  bool apart = false;         // values and failures are only returned, not printed
  bool redraws = false;       // see ReplOutput
  ReplOutput::Sink sink;      // on the rank that reads
  InStep* ranks = nullptr;    // null: only this process
};

/// Owned by one thread.
class Prompt {
 public:
  /// `options`, and everything that the seat refers to, must outlive the prompt.
  Prompt(const ReplOptions& options, PromptSeat seat);
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;

  struct Start {
    std::string text;      // what to report about the recipe
    bool is_whole = true;  // the recipe has no problems
    int exit = 0;          // exit code of this process when it must end; rank 0 has reported why
  };
  /// Reads the recipe. Collective. Throws Error (kRecipe) with the report when it is broken and nobody can
  /// fix it.
  Start start();
  /// Opens the run that failed.
  void look_at(FailedRun failed);

  /// Runs an entry on all ranks, "@N entry" on rank N alone. Called on the rank that reads. Returns the end
  /// of the first rank that failed by itself, else the end of this one.
  EntryEnd enter(const std::string& text);
  /// Runs entries until rank 0 leaves. Called on the other ranks. Returns its exit code.
  int follow();
  /// Makes the other ranks leave too. Called on the rank that reads.
  void leave(int exit);

  Completions complete(const std::string& line);
  bool is_open() const { return host_.is_open(); }
  int64_t step() const { return host_.session->session->state().train.step; }
  bool lost_ranks() const { return lost_ranks_; }
  ReplHistory& history() { return history_; }
  ReplOutput& output() { return output_; }

 private:
  bool reads() const { return seat_.ranks == nullptr || seat_.ranks->rank() == 0; }
  void write(std::string_view text);
  void push_method(const char* name);
  Json request() const;
  std::unique_ptr<TrainingSession> open(const Json& resolved);
  EntryEnd evaluate_addressed(const std::string& text);
  EntryEnd evaluate(const std::string& text);
  EntryEnd pass_over(const std::string& addressed, const std::string& text);
  EntryEnd of_one_rank(const std::vector<EntryEnd>& ends, int rank);
  EntryEnd compare(EntryEnd mine, const std::vector<EntryEnd>& ends);
  EntryEnd failed(const std::string& text, ExitCode code);
  /// Returns the text that this rank has printed since the last call, with a note when some was dropped.
  std::string take_printed();

  const ReplOptions& options_;
  PromptSeat seat_;
  bool lost_ranks_ = false;
  std::string printed_;     // text printed by this rank, when it does not read
  size_t num_dropped_ = 0;  // bytes printed beyond those
  InterruptRepl interrupts_;
  // Callbacks of every run whose session may call them; those of closed sessions are freed by the next build.
  std::vector<std::unique_ptr<LuaCallbacks>> callbacks_;
  LuaCallbacks* newest_callbacks_ = nullptr;
  Objects objects_;  // used by finalisers of the state
  ReplHistory history_;
  ReplOutput output_;
  ReplHost host_;
  LuaState state_{kPromptBytes};
};

}  // namespace tycho
