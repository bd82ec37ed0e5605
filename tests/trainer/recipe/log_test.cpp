// Tests of the rules for log.sinks.
#include "trainer/recipe/log.h"

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

TEST(LogConfig, PrometheusHasAFileOrAPort) {
  PrometheusSinkConfig config;
  const auto problems = [&] { return problems_of({kJsonl, SinkConfig{{config}}}); };
  EXPECT_EQ(
      problems(),
      "log.sinks[2]: has neither file nor port: write file = \"FOLDER/{run_name}.prom\" or port = 9400");
  config.port = 9400;
  EXPECT_EQ(problems(), "");
  config.host = "localhost";
  EXPECT_EQ(problems(),
            "log.sinks[2].host: \"localhost\" is not an address in numbers, such as 127.0.0.1 or ::1");
  config.host = "::1";
  EXPECT_EQ(problems(), "");
  EXPECT_EQ(problems_of({kJsonl, SinkConfig{{config}}, SinkConfig{{config}}}),
            "log.sinks[3]: is a second t.log.prometheus for \"port 9400\"; list it once");
}

TEST(LogConfig, RunsOfMlflowAreOnAServerOrInAFolder) {
  MlflowSinkConfig config;
  const auto problems = [&](const std::string& uri) {
    config.tracking_uri = uri;
    return problems_of({kJsonl, SinkConfig{{config}}});
  };
  for (const char* uri : {"", "mlruns", "/data/mlruns", "file:///data/mlruns", "http://tracker:5000",
                          "https://tracker.example/mlflow/"})
    EXPECT_EQ(problems(uri), "") << uri;
  const std::string path = "log.sinks[2].tracking_uri: ";
  EXPECT_EQ(problems("sqlite:///mlflow.db"),
            path +
                "expected http://, https:// or a folder, got \"sqlite:///mlflow.db\": start `mlflow server "
                "--backend-store-uri sqlite:///mlflow.db`, and write its address");
  EXPECT_EQ(problems("databricks"),
            path + "write https://HOST of the workspace, and set MLFLOW_TRACKING_TOKEN");
  EXPECT_EQ(problems("https://me:word@tracker"),
            path +
                "holds a password, which would be kept in the run folder: leave out the part before @, "
                "and set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD");
  EXPECT_EQ(problems("http://"),
            path + "\"http://\" is not the address of a server; write https://HOST:PORT");
  config.experiment = "";
  EXPECT_EQ(problems(""), "log.sinks[2].experiment: is empty: write the name of one");
}

TEST(LogConfig, RunsOfWandbHaveAModeAndAProject) {
  WandbSinkConfig config;
  config.project = "llm";
  EXPECT_EQ(problems_of({kJsonl, SinkConfig{{config}}}), "");
  config.mode = "live";
  EXPECT_EQ(
      problems_of({kJsonl, SinkConfig{{config}}}),
      "log.sinks[2].mode: expected \"online\" or \"offline\", got \"live\": write one of them, or leave "
      "it out and set WANDB_MODE");
  config.mode = "online";
  EXPECT_EQ(problems_of({kJsonl, SinkConfig{{config}}}), "");
  config.mode = "offline";
  config.project = "team/llm";
  EXPECT_EQ(
      problems_of({kJsonl, SinkConfig{{config}}}),
      "log.sinks[2].project: \"team/llm\" cannot be the name of a project: write one without / \\ # ? % :");
}

}  // namespace
}  // namespace tycho
