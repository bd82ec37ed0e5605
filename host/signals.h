// What signals do: end Lua code in the define phase, ask the trainer to stop in the run phase. A signal that
// was ignored when the program started (`nohup`, `trap '' HUP`) stays ignored.
#pragma once
#include <array>
#include <csignal>

#include "trainer/base/process/stop_signals.h"
#include "trainer/session/engine.h"

namespace tycho {

/// Makes Ctrl-C end running Lua code with "interrupted at file:line" during its lifetime, then restores the
/// old action. When no Lua code raised it, because only Tycho's own code ran last, the process ends (130).
class InterruptLua {
 public:
  InterruptLua();
  ~InterruptLua();
  InterruptLua(const InterruptLua&) = delete;
  InterruptLua& operator=(const InterruptLua&) = delete;

 private:
  struct sigaction before_ = {};
};

/// Makes Ctrl-C end the running Lua code and ask the engine to return at its next step, during its lifetime.
/// When neither runs, Ctrl-C is stored for take_interrupt(), or ends the process when `prompting` is false.
class InterruptRepl {
 public:
  explicit InterruptRepl(bool prompting);
  ~InterruptRepl();
  InterruptRepl(const InterruptRepl&) = delete;
  InterruptRepl& operator=(const InterruptRepl&) = delete;
  /// Returns the flag to open the engine's session with.
  StopFlag& stop();

 private:
  struct sigaction before_ = {};
};

/// Makes kStopSignals store their number in stop(), which ends a wait with an Error, during its lifetime.
/// Then restores the old actions and raises again a signal that came too late for the wait.
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

/// Returns true when one of kStopSignals came after stop_on_signals().
bool stop_was_requested();

/// Returns true when Ctrl-C was pressed since the last call.
bool take_interrupt();

/// Makes kStopSignals store their number in the returned flag from now on. The first one wins, so a repeated
/// SIGTERM changes nothing. A second Ctrl-C within two seconds at a terminal ends the process at once. With
/// `live_view`, the note about Ctrl-C is printed in the last line of the view on standard output.
StopFlag& stop_on_signals(bool live_view = false);

}  // namespace tycho
