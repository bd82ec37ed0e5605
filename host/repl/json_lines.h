// The prompt for editors and notebooks: one JSON object per line, in and out.
#pragma once
#include <string>
#include <string_view>

#include "host/repl/prompt.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {

/// Answers, about the running entry, the program that reads standard output. Owned by the thread that runs
/// it.
class JsonLines {
 public:
  /// Writes {"output": text}.
  void output(std::string_view text);
  /// Reads requests from standard input until its end or :quit, and answers each. A line that is not a
  /// request gets an error as its answer. Interrupts reach the running entry. Returns 0.
  int serve(Prompt& prompt, const Prompt::Start& start);

 private:
  void say(const Json& what);
  void fail(const std::string& message, ExitCode code);
  void answer(Prompt& prompt, const Json& request);
  std::string run(Prompt& prompt, const std::string& entry);

  Json id_;  // id of the request; null between requests
  std::string newest_output_;
  bool is_over_ = false;
};

}  // namespace tycho
