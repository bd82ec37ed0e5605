// The rules between the keys of logging.
#include "trainer/metrics/config.h"

#include <algorithm>

#include "trainer/base/config_problems.h"

namespace tycho {

void check(const LogConfig& log, ConfigProblems& problems) {
  const auto num_jsonl = std::count_if(log.sinks.begin(), log.sinks.end(),
                                       [](const SinkConfig& sink) { return sink.is<JsonlSinkConfig>(); });
  if (num_jsonl == 0)
    problems.add("log.sinks",
                 "lacks t.sink.jsonl {{}}, whose file plots, sweeps and `tycho ctl` read; add it");
  if (num_jsonl > 1) problems.add("log.sinks", "lists t.sink.jsonl {{}} {} times; list it once", num_jsonl);
}

}  // namespace tycho
