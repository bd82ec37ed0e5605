// What signals do: end Lua code in the define phase, ask the trainer to stop in the run phase. A signal that
// was ignored when the program started (`nohup`, `trap '' HUP`) stays ignored.
#pragma once
#include <array>
#include <csignal>

#include "trainer/base/process/stop_signals.h"
#include "trainer/engine/engine.h"

namespace tycho {

/// While it lives, Ctrl-C ends running Lua code with "interrupted at file:line"; the old action comes back
/// after it. Where no Lua code raised it, because the last that ran was Tycho's own, the process ends (130).
class InterruptLua {
 public:
  InterruptLua();
  ~InterruptLua();
  InterruptLua(const InterruptLua&) = delete;
  InterruptLua& operator=(const InterruptLua&) = delete;

 private:
  struct sigaction before_ = {};
};

/// While it lives, Ctrl-C ends the Lua code that runs and asks the engine to return at its next step. Where
/// neither runs it is noted for take_interrupt(), or ends the process when nobody will ask (`prompting`
/// false).
class InterruptRepl {
 public:
  explicit InterruptRepl(bool prompting);
  ~InterruptRepl();
  InterruptRepl(const InterruptRepl&) = delete;
  InterruptRepl& operator=(const InterruptRepl&) = delete;
  /// What the engine's session is opened with.
  StopFlag& stop();

 private:
  struct sigaction before_ = {};
};

/// While it lives, kStopSignals store their number in stop(), which ends a wait by an Error. The old actions
/// come back after it, and what came too late for the wait is raised again.
class StopWait {
 public:
  StopWait();
  ~StopWait();
  StopWait(const StopWait&) = delete;
  StopWait& operator=(const StopWait&) = delete;
  StopFlag& stop();

 private:
  std::array<struct sigaction, kStopSignals.size()> before_ = {};
};

/// True when one of them came after stop_on_signals().
bool stop_was_requested();

/// Whether Ctrl-C was pressed since the last call; forgets it.
bool take_interrupt();

/// From now on kStopSignals store their number in the flag that is returned; the first one wins, so a
/// repeated SIGTERM changes nothing. A second Ctrl-C within two seconds at a terminal ends the process at
/// once. `live_view`: what is said of Ctrl-C stands in the last line of the view on standard output.
StopFlag& stop_on_signals(bool live_view = false);

}  // namespace tycho
