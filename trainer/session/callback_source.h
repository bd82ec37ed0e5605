// Finds the code of a run's callbacks. Torch-free.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/callbacks/callback.h"

namespace tycho {

class TrainingSession;

/// Creates the callbacks of a recipe. Outlives the run that uses it.
class CallbackSource {
 public:
  virtual ~CallbackSource() = default;
  /// Returns one callback for each of the recipe's.
  virtual std::vector<Callback> callbacks() = 0;
  /// Returns null unless the schedule is dynamic.
  virtual std::unique_ptr<ScheduleCode> schedule() = 0;
  /// Sets the session that callbacks read. Called before the first event, and with null when the session is
  /// closed.
  virtual void set_session(TrainingSession* session) = 0;
  /// Evaluates code that an operator typed and returns its value as text. Adds commands to the port; without
  /// `may_command` it adds none.
  virtual std::string evaluate(const std::string& code, bool may_command, const EventInfo& info,
                               CallbackPort& port) = 0;
};

}  // namespace tycho
