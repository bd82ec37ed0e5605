// Every call is one that the official client makes, with fields and arguments that it uses: another server
// may know no more. And a row has the numbers that wandb.Api was seen to read.
#include "trainer/loggers/wandb_server.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "tests/trainer/loggers/wandb_online_fixture.h"

namespace tycho {
namespace {

using testing::SeenRequest;
using testing::WandbStandIn;

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else if (!word.empty()) {
      if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) words.insert(word);
      word.clear();
    }
  }
  return words;
}

/// Words of `text` that are not in `known`.
std::string beyond(const std::set<std::string>& words, const std::string& known) {
  const std::set<std::string> allowed = words_of(known);
  std::string all;
  for (const std::string& word : words)
    if (!allowed.contains(word)) all += word + " ";
  return all;
}

// Written by tests/golden/loggers/judge_wandb.py with wandb 0.31.0.
Json golden() {
  return Json::parse(text_of(std::string(TYCHO_SOURCE_DIR) + "/tests/golden/loggers/wandb_calls.json"));
}

TEST(WandbServer, SendsOnlyWhatTheOfficialClientSends) {
  const Json known = golden();
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  for (int64_t first = 0; first < 4; first += 2) {
    LogConfig log;
    log.sinks = online();
    const auto reporter = make_run_reporter(dir.path(), log, nullptr);
    RunInfo run = some_run();
    run.run_dir = dir.path();
    run.first_step = first;
    reporter->run_start(run);
    reporter->step(some_step(first + 1), true);
    reporter->event("alert", "a: b", {{"step", first + 1}, {"title", "a"}, {"text", "b"}});
    reporter->event("checkpoint", "saved", {{"step", first + 1}, {"path", dir / "c"}, {"bytes", 1}});
    reporter->step(some_step(first + 2), true);
    reporter->run_end("done", {});
  }
  std::set<std::string> called;
  for (const SeenRequest& request : server.requests()) {
    if (request.method == "PUT") continue;
    const Json body = Json::parse(request.body);
    if (request.path != "/graphql") {
      for (const auto& [key, value] : body.items())
        EXPECT_EQ(beyond({key}, known.at("stream")), "") << request.body;
      continue;
    }
    const std::string name = body.at("operationName");
    called.insert(name);
    ASSERT_TRUE(known.at("calls").contains(name)) << name;
    EXPECT_EQ(beyond(words_of(body.at("query")), known.at("calls").at(name)), "") << name;
    const Json input = body.at("variables").value("input", Json::object());
    for (const auto& [key, value] : input.items())
      EXPECT_EQ(beyond({key}, known.at("inputs").at(name)), "") << name;
  }
  EXPECT_EQ(called, (std::set<std::string>{"CommitArtifact", "CreateArtifact", "CreateArtifactManifest",
                                           "CreateRunFiles", "NotifyScriptableRunAlert", "RunResumeStatus",
                                           "UpsertBucket"}));
}

TEST(WandbServer, RowsHaveTheNumbersThatTheOfficialClientReadsBack) {
  const Json row = golden().at("row");
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(), {0, 2});
  const Json sent = Json::parse(server.run().history.at(0));
  for (const char* name :
       {"_step", "_timestamp", "_runtime", "loss", "lr", "grad_norm", "tokens", "step_s"}) {
    EXPECT_TRUE(row.contains(name)) << name;
    EXPECT_TRUE(sent.contains(name)) << name;
    EXPECT_NE(row.value(name, "map"), "map") << name;
  }
}

}  // namespace
}  // namespace tycho
