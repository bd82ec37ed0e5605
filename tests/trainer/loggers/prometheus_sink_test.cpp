// Tests of the file for node_exporter, and of the port.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "tests/trainer/rendezvous/reserved_port.h"
#include "trainer/base/error.h"
#include "trainer/http/http_exchange.h"

namespace tycho {
namespace {

std::vector<SinkConfig> prometheus(const std::string& file) {
  PrometheusSinkConfig config;
  config.file = file;
  return {SinkConfig{{config}}};
}

bool has_line(const std::string& text, const std::string& line) {
  const std::vector<std::string> lines = lines_of(text);
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST(PrometheusSink, HasTheNewestNumbers) {
  TempDir dir;
  EXPECT_TRUE(
      run_attempt(dir.path(), prometheus(dir / "textfiles/{run_name}.prom"), {0, 3}).warnings.empty());
  const std::string text = text_of(dir / "textfiles/mpt-125m.prom");
  EXPECT_TRUE(has_line(text, "tycho_loss{run=\"mpt-125m\"} 3.1")) << text;
  EXPECT_TRUE(has_line(text, "tycho_step{run=\"mpt-125m\"} 3")) << text;
  EXPECT_TRUE(has_line(text, "tycho_running{run=\"mpt-125m\"} 0")) << text;
  EXPECT_TRUE(has_line(text, "# TYPE tycho_loss gauge")) << text;
}

TEST(PrometheusSink, LabelsSetsAndNamesOfCallbacks) {
  TempDir dir;
  LogConfig log;
  log.sinks = prometheus(dir / "a.prom");
  const auto reporter = make_run_reporter(dir.path(), log, nullptr);
  reporter->run_start(some_run());
  reporter->metric(1, "eval.loss", 2.5);
  reporter->metric(1, "eval.c4.loss", NAN);
  reporter->metric(1, "my \"own\".name\\", 7);
  reporter->metric(1, "my_own_name", -INFINITY);
  reporter->run_end("done", {});
  const std::string text = text_of(dir / "a.prom");
  EXPECT_TRUE(has_line(text, "tycho_eval_loss{run=\"mpt-125m\"} 2.5")) << text;
  EXPECT_TRUE(has_line(text, "tycho_eval_loss{run=\"mpt-125m\",set=\"c4\"} NaN")) << text;
  EXPECT_TRUE(has_line(text, "tycho_metric{run=\"mpt-125m\",name=\"my \\\"own\\\".name\\\\\"} 7")) << text;
  EXPECT_TRUE(has_line(text, "tycho_metric{run=\"mpt-125m\",name=\"my_own_name\"} -Inf")) << text;
}

TEST(PrometheusSink, ShowsThatTheRunIsRunning) {
  TempDir dir;
  LogConfig log;
  log.sinks = prometheus(dir / "a.prom");
  const auto reporter = make_run_reporter(dir.path(), log, nullptr);
  reporter->run_start(some_run());
  EXPECT_TRUE(has_line(text_of(dir / "a.prom"), "tycho_running{run=\"mpt-125m\"} 1"));
}

TEST(PrometheusSink, AnswersOnItsPortWhileTheRunGoesOn) {
  TempDir dir;
  const ReservedPort port;
  PrometheusSinkConfig config;
  config.port = port.number();
  const std::string url = "http://127.0.0.1:" + std::to_string(port.number()) + "/metrics";
  LogConfig log;
  log.sinks = {SinkConfig{{config}}};
  {
    const auto reporter = make_run_reporter(dir.path(), log, nullptr);
    reporter->run_start(some_run());
    EXPECT_TRUE(has_line(http_exchange({.url = url}).body, "tycho_running{run=\"mpt-125m\"} 1"));
    reporter->step(some_step(7), true);
    reporter->run_end("done", {});
    const std::string text = http_exchange({.url = url}).body;
    EXPECT_TRUE(has_line(text, "tycho_step{run=\"mpt-125m\"} 7")) << text;
    EXPECT_TRUE(has_line(text, "tycho_running{run=\"mpt-125m\"} 0")) << text;
    std::filesystem::create_directory(dir / "other");
    const auto second = make_run_reporter(dir / "other", log, nullptr);
    EXPECT_THROW(second->run_start(some_run()), Error) << "the port is taken";
  }
  EXPECT_EQ(http_exchange({.url = url}).status, 0) << "nobody listens after the run";
  EXPECT_TRUE(files_below(dir.path(), ".prom").empty());
}

}  // namespace
}  // namespace tycho
