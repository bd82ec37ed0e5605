// Sends a line and turns a refusal into an Error.
#include "host/run_control.h"

#include "trainer/base/error.h"
#include "trainer/control/channel.h"

namespace tycho {

std::string tell_run(const std::string& run_dir, const std::string& code, bool may_command) {
  ControlClient client(run_dir);
  const ControlAnswer answer = client.ask(code, may_command);
  if (!answer.ok) throw Error("[run] " + answer.text, ExitCode::kRecipe);
  return answer.text;
}

}  // namespace tycho
