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

inline constexpr int64_t kPromptBytes = int64_t{1} << 30;  // of Lua's memory, for people who look at much

/// Who is at a prompt, and where its text goes.
struct PromptSeat {
  bool interactive = false;   // a person: reports are shortened to the screen
  bool mends_recipe = false;  // a broken recipe or lost ranks do not end the prompt
  bool prompting = false;     // Ctrl-C between entries is for who reads, and does not end the process
  bool apart = false;         // values and failures are only returned, not printed
  bool redraws = false;       // as for ReplOutput
  ReplOutput::Sink sink;      // of the rank that reads
  InStep* ranks = nullptr;    // null: this process alone
};

/// Owned by one thread.
class Prompt {
 public:
  /// Both outlive it, and so does what the seat names.
  Prompt(const ReplOptions& options, PromptSeat seat);
  Prompt(const Prompt&) = delete;
  Prompt& operator=(const Prompt&) = delete;

  struct Start {
    std::string text;      // what there is to say of the recipe
    bool is_whole = true;  // nothing is wrong with it
    int exit = 0;          // of this process, when it is to end: rank 0 has said why
  };
  /// Reads the recipe. Collective. Throws Error (kRecipe) with the report when it is broken and there is
  /// nobody to fix it.
  Start start();
  /// The run that failed becomes the one that is open.
  void look_at(FailedRun failed);

  /// On the rank that reads: runs an entry on all ranks, "@N entry" on rank N alone. How it ended: as the
  /// first rank says that failed by itself, else as this one.
  EntryEnd enter(const std::string& text);
  /// On the others: runs entries until rank 0 leaves. Returns its exit code.
  int follow();
  /// On the rank that reads: the others leave as well.
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
  /// What this rank has printed since the last call, with a mark where it was more than is kept.
  std::string take_printed();

  const ReplOptions& options_;
  PromptSeat seat_;
  bool lost_ranks_ = false;
  std::string printed_;     // by this rank, when it does not read
  size_t num_dropped_ = 0;  // bytes that it printed beyond those
  InterruptRepl interrupts_;
  // Of every run whose session may call them; those of sessions that are gone go with the next build.
  std::vector<std::unique_ptr<LuaCallbacks>> callbacks_;
  LuaCallbacks* newest_callbacks_ = nullptr;
  Objects objects_;  // finalisers of the state come back to it
  ReplHistory history_;
  ReplOutput output_;
  ReplHost host_;
  LuaState state_{kPromptBytes};
};

}  // namespace tycho
