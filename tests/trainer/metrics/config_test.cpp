// Tests of the rules for log.sinks.
#include "trainer/metrics/config.h"

#include <gtest/gtest.h>

#include "trainer/base/config_problems.h"

namespace tycho {
namespace {

template <class Config>
SinkConfig sink(const std::string& target = "") {
  Config config;
  if constexpr (requires { config.dir; }) config.dir = target;
  if constexpr (requires { config.file; }) config.file = target;
  return SinkConfig{{config}};
}

std::string problems_of(std::vector<SinkConfig> sinks) {
  LogConfig log;
  log.sinks = std::move(sinks);
  ConfigProblems problems;
  check(log, problems);
  std::string text;
  for (const ConfigProblem& problem : problems.take())
    text += (text.empty() ? "" : "\n") + problem.path + ": " + problem.message;
  return text;
}

const SinkConfig kJsonl = sink<JsonlSinkConfig>();

TEST(LogConfig, AcceptsSeveralLoggers) {
  EXPECT_EQ(problems_of({kJsonl, sink<TensorboardSinkConfig>(), sink<TensorboardSinkConfig>("tb"),
                         sink<CsvSinkConfig>(), sink<PrometheusSinkConfig>("{run_name}.prom")}),
            "");
}

TEST(LogConfig, NeedsMetricsJsonl) {
  EXPECT_EQ(problems_of({sink<CsvSinkConfig>()}),
            "log.sinks: lacks t.log.jsonl {}, whose file plots, sweeps and `tycho ctl` read; add it");
  EXPECT_EQ(problems_of({kJsonl, kJsonl}),
            "log.sinks[2]: is a second t.log.jsonl for the same file; list it once");
}

TEST(LogConfig, TwoLoggersDoNotShareAFile) {
  EXPECT_EQ(problems_of({kJsonl, sink<CsvSinkConfig>("a.csv"), sink<CsvSinkConfig>("a.csv")}),
            "log.sinks[3]: is a second t.log.csv for \"a.csv\"; list it once");
}

TEST(LogConfig, FilesAreNamedAsTheirReadersNeed) {
  EXPECT_EQ(
      problems_of({kJsonl, sink<PrometheusSinkConfig>("run.txt")}),
      "log.sinks[2].file: \"run.txt\" does not end in .prom, and node_exporter reads no other file; write "
      "\"FOLDER/{run_name}.prom\"");
  EXPECT_EQ(problems_of({kJsonl, sink<CsvSinkConfig>("{name}.csv")}),
            "log.sinks[2].file: \"{name}.csv\": only {run_name} can be in braces");
  EXPECT_EQ(problems_of({kJsonl, sink<CsvSinkConfig>("tables/")}),
            "log.sinks[2].file: \"tables/\" is a folder; write a file in it");
}

TEST(LogConfig, RunsOfWandbAreOfflineAndHaveAProject) {
  WandbSinkConfig config;
  config.project = "llm";
  EXPECT_EQ(problems_of({kJsonl, SinkConfig{{config}}}), "");
  config.mode = "online";
  EXPECT_EQ(
      problems_of({kJsonl, SinkConfig{{config}}}),
      "log.sinks[2].mode: wanted \"offline\", given \"online\": a run sends nothing itself; write offline, "
      "and upload its folders with `wandb sync PATH` whenever you like");
  config.mode = "offline";
  config.project = "team/llm";
  EXPECT_EQ(
      problems_of({kJsonl, SinkConfig{{config}}}),
      "log.sinks[2].project: \"team/llm\" cannot be the name of a project: write one without / \\ # ? % :");
}

}  // namespace
}  // namespace tycho
