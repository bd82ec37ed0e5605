// Messages of a run to people, as Slack's webhooks take them: t.cb.notify.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/metrics/reporter.h"
#include "trainer/recipe/callbacks.h"

namespace tycho {

struct NotifyPatience {
  double timeout_s = 5;      // of a request
  double first_wait_s = 1;   // after a failure, doubling
  int num_tries = 3;         // of a message
  double end_s = 8;          // for the rest at the end of a run
  double look_every_s = 10;  // longest time between two looks at a stall
};

/// Makes a reporter for each t.cb.notify, which posts how the run ends, its alerts, and stalls, from a thread
/// of its own. Masks the address from here on. Throws Error (kUnusable) when the variable with the address is
/// not set; a run that was started before gets a warning at its first step instead, and trains on.
std::vector<std::unique_ptr<Reporter>> make_notifiers(const std::map<std::string, CallbackConfig>& callbacks,
                                                      const std::string& run_name, const std::string& run_dir,
                                                      const NotifyPatience& patience = {});

/// Returns the exit code of the process for the end that Reporter::run_end tells of.
int exit_code_of(const std::string& reason, std::optional<ExitCode> failure);

}  // namespace tycho
