// Counts starts by events.jsonl.
#include "trainer/run_folder/restarts.h"

#include <filesystem>
#include <optional>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/metrics/line_file.h"

namespace tycho {
namespace {

/// One start of the run, from its records.
struct Start {
  int64_t first_step = 0;
  bool has_ended = false;          // it wrote a run_end
  std::optional<int64_t> failure;  // the exit code, when it ended with an error
};

bool has_died(const Start& start) {
  if (!start.has_ended) return true;
  return start.failure && *start.failure >= 128 &&
         *start.failure != static_cast<int64_t>(ExitCode::kInterrupted);
}

std::optional<int64_t> integer_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return {};
  return found->get<int64_t>();
}

}  // namespace

int64_t fruitless_starts(const std::string& run_dir, int64_t first_step) {
  const std::string path = run_dir + "/events.jsonl";
  std::istringstream events(std::filesystem::exists(path) ? read_file(path) : "");
  int64_t count = 0;
  std::optional<Start> start;
  const auto close = [&] {
    if (start) count = start->first_step == first_step && has_died(*start) ? count + 1 : 0;
  };
  for (std::string line; std::getline(events, line);) {
    // Most lines are none of these; the last one may be half written.
    if (line.find("\"run_start\"") == std::string::npos && line.find("\"run_end\"") == std::string::npos &&
        line.find(kNotStarted) == std::string::npos)
      continue;
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object()) continue;
    const auto facts = event.find("facts");
    const Json known = facts != event.end() && facts->is_object() ? *facts : Json::object();
    const std::string kind = event.value("kind", "");
    if (kind == kNotStarted) {
      const std::optional<int64_t> failure = integer_at(known, "exit_code");
      if (failure == static_cast<int64_t>(ExitCode::kNoProgress)) continue;  // what this count is for
      close();
      start = Start{integer_at(known, "first_step").value_or(-1), /*has_ended=*/true, failure};
    } else if (kind == "run_start") {
      close();
      start = Start{.first_step = integer_at(known, "first_step").value_or(-1)};
    } else if (kind == "run_end" && start) {
      start->has_ended = true;
      start->failure = integer_at(known, "exit_code");
    }
  }
  close();
  return count;
}

void require_progress(const std::string& run_dir, int64_t first_step) {
  const int64_t count = fruitless_starts(run_dir, first_step);
  if (count < kMostFruitlessStarts) return;
  fail(ExitCode::kNoProgress,
       "[run] {} was started {} times from step {}, and died each time before it had saved anything newer: "
       "one more "
       "start would do the same. {}/log.txt has its last words. Remove the cause, or save sooner "
       "(ckpt.every); then "
       "tycho run --force tries again",
       run_dir, count, first_step, run_dir);
}

}  // namespace tycho
