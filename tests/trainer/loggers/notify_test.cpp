// Messages to a webhook that answers, fails or hangs.
#include "trainer/loggers/notify.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "tests/trainer/data/storage/http_server.h"
#include "tests/trainer/loggers/loggers_fixture.h"
#include "trainer/base/config_problems.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

using testing::HttpServer;
using testing::SeenRequest;
using testing::ServerReply;

const char* const kSecretPath = "/services/T012/B345/s3cr3tw3bh00k";

std::map<std::string, CallbackConfig> callbacks(double stall_s = 1800) {
  NotifyConfig config;
  config.url_env = "TYCHO_TEST_WEBHOOK";
  config.stall.value = stall_s;
  return {{"people", CallbackConfig{{config}}}};
}

/// A run that posts to a server with this fate.
class NotifyTest : public ::testing::Test {
 protected:
  NotifyTest() : server_(dir_.path()), url_("TYCHO_TEST_WEBHOOK", (server_.url() + kSecretPath).c_str()) {
    answer({.status = 200, .body = "ok", .is_whole = true});
  }

  void answer(const ServerReply& reply) {
    server_.set_fault([reply](const SeenRequest&) { return reply; });
  }

  /// Opens a run with its record, which tells `told_`.
  std::unique_ptr<Reporter> open(const std::map<std::string, CallbackConfig>& notify = callbacks(),
                                 const NotifyPatience& patience = {}) {
    auto reporter = make_run_reporter(dir_.path(), LogConfig(), std::make_unique<ToldReporter>(told_),
                                      make_notifiers(notify, "demo", dir_.path(), patience));
    RunInfo run = some_run();
    run.run_dir = dir_.path();
    reporter->run_start(run);
    return reporter;
  }

  static void step(Reporter& reporter, int64_t number) {
    StepMetrics metrics = some_step(number);
    metrics.loss = 2.5;
    reporter.step(metrics, true);
  }

  /// Texts of the messages so far, each of which must be as Slack takes it.
  std::vector<std::string> texts() {
    std::vector<std::string> texts;
    for (const SeenRequest& request : server_.requests()) {
      EXPECT_EQ(request.method, "POST");
      EXPECT_EQ(request.path, kSecretPath);
      EXPECT_EQ(request.headers.at("content-type"), "application/json");
      const Json body = Json::parse(request.body);
      EXPECT_EQ(body.size(), 1u) << request.body;
      texts.push_back(body.at("text"));
    }
    return texts;
  }

  /// Returns true as soon as a message has this part.
  bool is_told(const std::string& part) {
    for (int i = 0; i < 6000; ++i) {
      for (const std::string& text : texts())
        if (text.find(part) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  TempDir dir_;
  HttpServer server_;
  ScopedEnv url_;
  Told told_;
};

TEST_F(NotifyTest, PostsHowTheRunEnds) {
  struct Case {
    std::string reason;
    std::optional<ExitCode> failure;
    const char* code;
  };
  const std::vector<Case> cases = {
      {"done, 8 steps", {}, "exit code 0"},
      {"stopped by SIGTERM after step 8, saved; the same command resumes from there", {}, "exit code 143"},
      {"paused after step 8 of 9, saved", {}, "exit code 0"},
      {"failed: [data] a & b <c>", ExitCode::kUnusable, "exit code 12"}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto reporter = open();
    step(*reporter, 8);
    reporter->run_end(cases[i].reason, cases[i].failure);
    const std::vector<std::string> all = texts();
    ASSERT_EQ(all.size(), i + 1);
    for (const char* part : {"demo on ", cases[i].code, "step 8", "loss 2.5"})
      EXPECT_NE(all[i].find(part), std::string::npos) << all[i];
    const std::string reason = i == 3 ? "failed: [data] a &amp; b &lt;c&gt;" : cases[i].reason;
    EXPECT_NE(all[i].find(reason), std::string::npos) << all[i];
  }
  EXPECT_TRUE(told_.warnings.empty());
}

TEST_F(NotifyTest, PostsAlertsAndStallsAndThatItGoesOn) {
  const auto reporter = open(callbacks(/*stall_s=*/0.5), {.look_every_s = 0.05});
  step(*reporter, 1);
  reporter->event("alert", "loss spike: 9",
                  {{"title", "loss spike"}, {"text", "loss 9 at step 1"}, {"step", 1}});
  EXPECT_TRUE(is_told("loss spike: loss 9 at step 1"));
  EXPECT_TRUE(is_told("stalled: nothing has happened for "));
  step(*reporter, 2);
  EXPECT_TRUE(is_told("goes on after "));
  reporter->run_end("done, 2 steps", {});
}

// The steps never wait, the end waits little, people are told once, and nobody reads the address.
TEST_F(NotifyTest, AServerThatFailsDelaysNothingAndItsAddressStaysSecret) {
  for (const ServerReply& reply :
       {ServerReply{.status = 500, .body = "oops"}, ServerReply{.status = 404, .body = "no_service"},
        ServerReply{.status = 429, .body = "slow", .headers = {"Retry-After: 3600"}},
        ServerReply{.status = 302, .body = "", .headers = {std::string("Location: ") + kSecretPath}},
        ServerReply{.status = 200, .body = "ok", .hang_s = 3600}, ServerReply{.drop = true}}) {
    answer(reply);
    told_ = {};
    const auto reporter = open();
    const auto begin = std::chrono::steady_clock::now();
    reporter->event("alert", "a: b", {{"title", "a"}, {"text", "b"}, {"step", 1}});
    for (int64_t number = 1; number <= 100; ++number) step(*reporter, number);
    const auto end = std::chrono::steady_clock::now();
    reporter->run_end("done, 100 steps", {});
    EXPECT_LT(std::chrono::duration<double>(end - begin).count(), 5) << reply.status;
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - end).count(), 10 + 20);
    EXPECT_EQ(told_.end, "done, 100 steps");
    ASSERT_EQ(told_.warnings.size(), 1u) << reply.status;
    EXPECT_EQ(told_.warnings[0].find("s3cr3t"), std::string::npos) << told_.warnings[0];
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path()))
      EXPECT_TRUE(!entry.is_regular_file() ||
                  text_of(entry.path().string()).find("s3cr3t") == std::string::npos)
          << entry.path();
  }
}

TEST_F(NotifyTest, ACertificateThatIsNotTrustedIsSaidAtOnce) {
  const ScopedEnv certificates("CURL_CA_BUNDLE", (dir_ / "none.pem").c_str());
  const ScopedEnv encrypted("TYCHO_TEST_WEBHOOK", ("https" + server_.url().substr(4) + kSecretPath).c_str());
  const auto reporter = open(callbacks(), {.first_wait_s = 3600, .num_tries = 1'000'000, .end_s = 600});
  step(*reporter, 1);
  reporter->run_end("done, 1 steps", {});
  ASSERT_EQ(told_.warnings.size(), 1u);
  EXPECT_NE(told_.warnings[0].find("name another file in CURL_CA_BUNDLE"), std::string::npos);
}

TEST_F(NotifyTest, WithoutAnAddressAFirstStartEndsAndALaterOneWarns) {
  for (const char* value : {"", "hooks.slack.com/services/x"}) {
    const ScopedEnv wrong("TYCHO_TEST_WEBHOOK", value);
    const TempDir dir;
    try {
      make_notifiers(callbacks(), "demo", dir.path());
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      EXPECT_NE(std::string(error.what()).find("TYCHO_TEST_WEBHOOK"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("hooks"), std::string::npos) << error.what();
    }
  }
  open()->run_end("done, 0 steps", {});
  const ScopedEnv none("TYCHO_TEST_WEBHOOK", nullptr);
  const auto reporter = open();
  for (int64_t number = 1; number <= 3; ++number) step(*reporter, number);
  reporter->run_end("done, 3 steps", {});
  ASSERT_EQ(told_.warnings.size(), 1u);
  EXPECT_NE(told_.warnings[0].find("the run continues"), std::string::npos) << told_.warnings[0];
}

TEST(NotifyConfig, AnAddressInPlaceOfItsVariableIsRefusedAndNotRepeated) {
  for (const char* wrong : {"https://hooks.slack.com/services/T0", "", "9LIVES", "A-B"}) {
    NotifyConfig config;
    config.url_env = wrong;
    ConfigProblems problems;
    check(CallbackConfig{{config}}, "callbacks.people", {}, false, problems);
    const std::vector<ConfigProblem> found = problems.take();
    ASSERT_EQ(found.size(), 1u) << wrong;
    EXPECT_EQ(found[0].path, "callbacks.people.url_env");
    EXPECT_EQ(found[0].message.find("T0"), std::string::npos) << found[0].message;
  }
}

}  // namespace
}  // namespace tycho
