// Runs of MLflow on a tracking server that answers as MLflow 3.17 does, fails, refuses or hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/trainer/data/storage/http_server.h"
#include "tests/trainer/loggers/loggers_fixture.h"
#include "tests/trainer/rendezvous/reserved_port.h"
#include "trainer/base/error.h"
#include "trainer/base/hmac.h"
#include "trainer/loggers/mlflow_store.h"

namespace tycho {
namespace {

using testing::HttpServer;
using testing::SeenRequest;
using testing::ServerReply;

const std::string kApi = "/api/2.0/mlflow/";

/// A tracking server with one experiment and one run.
class Tracker {
 public:
  explicit Tracker(const std::string& folder) : server(folder) {
    server.set_fault([this](const SeenRequest& request) { return answer(request); });
  }
  /// The bodies of requests of one kind.
  std::vector<Json> sent(const std::string& call) const {
    std::vector<Json> bodies;
    for (const SeenRequest& request : server.requests())
      if (request.path == kApi + call) bodies.push_back(Json::parse(request.body));
    return bodies;
  }
  /// "value step" of all points of a metric.
  std::vector<std::string> points(const std::string& key) const {
    std::vector<std::string> all;
    for (const Json& body : sent("runs/log-batch"))
      for (const Json& point : body.value("metrics", Json::array()))
        if (point.at("key") == key) all.push_back(point.at("value").dump() + " " + point.at("step").dump());
    return all;
  }

  std::string status = "RUNNING";
  int failures_left = 0;   // answers of 503 before one that helps
  std::string needs = "";  // the authorization, or 401
  std::string artifact_uri = "mlflow-artifacts:/5/abc 123/artifacts";
  bool takes_artifacts = true;
  HttpServer server;

 private:
  ServerReply answer(const SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    const auto given = request.headers.find("authorization");
    if (!needs.empty() && (given == request.headers.end() || given->second != needs))
      return {401, "You are not authenticated."};
    if (failures_left > 0 && failures_left-- > 0) return {503, "starting"};
    if (request.method == "PUT") return takes_artifacts ? ServerReply{200, "{}"} : ServerReply{500, "full"};
    const std::string call = request.path.substr(kApi.size(), request.path.find('?') - kApi.size());
    const Json body = request.body.empty() ? Json() : Json::parse(request.body);
    if (call == "experiments/get-by-name")
      return has_experiment_ ? ServerReply{200, R"({"experiment": {"experiment_id": "5"}})"}
                             : ServerReply{404, R"({"error_code": "RESOURCE_DOES_NOT_EXIST"})"};
    if (call == "experiments/create")
      return has_experiment_ = true, ServerReply{200, R"({"experiment_id": "5"})"};
    if (call == "runs/create")
      return {200, Json{{"run", {{"info", {{"run_id", "abc123"}, {"artifact_uri", artifact_uri}}}}}}.dump()};
    if (call == "runs/update") status = body.at("status");
    if (call == "runs/log-batch")
      for (const Json& point : body.value("metrics", Json::array())) {
        int64_t& last = last_steps_[point.at("key")];
        last = std::max(last, point.at("step").get<int64_t>());
      }
    if (call == "runs/get" && request.path.ends_with("run_id=abc123")) {
      Json metrics = Json::array();
      for (const auto& [key, step] : last_steps_) metrics.push_back({{"key", key}, {"step", step}});
      return {200,
              Json{{"run",
                    {{"info",
                      {{"lifecycle_stage", "active"}, {"status", status}, {"artifact_uri", artifact_uri}}},
                     {"data", {{"metrics", metrics}, {"tags", tags_}}}}}}
                  .dump()};
    }
    if (call == "runs/set-tag") tags_.push_back({{"key", body.at("key")}, {"value", body.at("value")}});
    if (call == "runs/get") return {404, R"({"message": "Run with id=x not found"})"};
    return {200, "{}"};
  }

  std::mutex mutex_;
  bool has_experiment_ = false;
  std::map<std::string, int64_t> last_steps_;
  Json tags_ = Json::array();
};

std::vector<SinkConfig> mlflow_at(const std::string& url) {
  MlflowSinkConfig config;
  config.tracking_uri = url;
  config.experiment = "my words";
  config.tags = {{"team", "a"}};
  return {SinkConfig{{config}}};
}

constexpr MlflowPatience kHasty = {
    .start_tries = 2, .tries = 4, .first_wait_s = 0.001, .longest_wait_s = 0.01};

std::string failure_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    return error.what();
  }
}

TEST(MlflowServer, SendsTheRunWithItsRecipeAndNumbers) {
  TempDir dir;
  Tracker tracker(dir.path());
  write_text(dir / "recipe.json", R"({"seed": 17, "model": {"kind": "mpt"}})");
  EXPECT_TRUE(run_attempt(dir.path(), mlflow_at(tracker.server.url() + "/"), {0, 3}).warnings.empty());
  EXPECT_EQ(tracker.server.requests().at(0).path,
            kApi + "experiments/get-by-name?experiment_name=my%20words");
  EXPECT_EQ(tracker.sent("experiments/create").at(0), (Json{{"name", "my words"}}));
  const Json created = tracker.sent("runs/create").at(0);
  EXPECT_EQ(created.at("experiment_id"), "5");
  EXPECT_EQ(created.at("run_name"), "mpt-125m");
  EXPECT_EQ(created.at("tags").back(), (Json{{"key", "team"}, {"value", "a"}}));
  EXPECT_EQ(tracker.sent("runs/log-batch").at(0).at("params"),
            Json::parse(R"([{"key": "seed", "value": "17"}, {"key": "model.kind", "value": "mpt"}])"));
  EXPECT_EQ(tracker.points("loss"), (std::vector<std::string>{"1.1 1", "2.1 2", "3.1 3"}));
  const Json ended = tracker.sent("runs/update").at(0);
  EXPECT_EQ(ended.at("status"), "FINISHED");
  EXPECT_GT(ended.at("end_time").get<int64_t>(), 1'700'000'000'000);
  EXPECT_EQ(text_of(dir / "mlflow_run_id.txt"), "abc123\n");
}

/// The requests that put artifacts.
std::vector<SeenRequest> artifacts_of(const Tracker& tracker) {
  std::vector<SeenRequest> puts;
  for (const SeenRequest& request : tracker.server.requests())
    if (request.method == "PUT") puts.push_back(request);
  return puts;
}

TEST(MlflowServer, TablesAreArtifactsAndATagNamesTheNewest) {
  TempDir dir;
  Tracker tracker(dir.path());
  const auto store = make_mlflow_server(tracker.server.url(), kHasty);
  const std::string id = store->create_run({.experiment = "x", .name = "a"});
  store->add_table(id, some_table("two words"), 3);
  const auto again = make_mlflow_server(tracker.server.url(), kHasty);
  again->resume_run(id);
  again->add_table(id, some_table("sums"), 4);
  const std::vector<SeenRequest> puts = artifacts_of(tracker);
  ASSERT_EQ(puts.size(), 2u);
  EXPECT_EQ(
      puts[0].path,
      "/api/2.0/mlflow-artifacts/artifacts/5/abc%20123/artifacts/tables/icl/two%20words/step-000000003.json");
  EXPECT_EQ(Json::parse(puts[0].body), split_form(some_table("two words")));
  const Json tag = tracker.sent("runs/set-tag").back();
  EXPECT_EQ(tag.at("key"), "mlflow.loggedArtifacts");
  EXPECT_EQ(Json::parse(tag.at("value").get<std::string>()),
            Json::parse(R"([{"path": "tables/icl/sums/step-000000004.json", "type": "table"},
    {"path": "tables/icl/two words/step-000000003.json", "type": "table"}])"));
}

TEST(MlflowServer, SaysWhereTablesAreThatItDoesNotTake) {
  for (const auto& [uri, why] : {std::pair{"s3://bucket/5/abc123", "there are no AWS credentials here"},
                                 {"gs://bucket/5/abc123", "neither goes through the server nor is S3"}}) {
    const ScopedEnv key("AWS_ACCESS_KEY_ID", nullptr), secret("AWS_SECRET_ACCESS_KEY", nullptr),
        profile("AWS_PROFILE", nullptr), file("AWS_SHARED_CREDENTIALS_FILE", "/nowhere"),
        config("AWS_CONFIG_FILE", "/nowhere"), machine("AWS_EC2_METADATA_DISABLED", "true");
    TempDir dir;
    Tracker tracker(dir.path());
    tracker.artifact_uri = uri;
    const auto store = make_mlflow_server(tracker.server.url(), kHasty);
    store->add_table(store->create_run({.experiment = "x", .name = "a"}), some_table("words"), 3);
    EXPECT_TRUE(artifacts_of(tracker).empty());
    const Json tag = tracker.sent("runs/set-tag").at(0);
    EXPECT_EQ(tag.at("key"), "tycho.tables");
    const auto value = tag.at("value").get<std::string>();
    for (const char* part : {uri, why, "icl_outputs.jsonl"})
      EXPECT_NE(value.find(part), std::string::npos) << value;
  }
}

TEST(MlflowServer, TablesWhoseArtifactsAreInS3AreWrittenThere) {
  TempDir dir;
  Tracker tracker(dir.path()), bucket(dir.path());
  const std::string endpoint = bucket.server.url() + "/";
  const ScopedEnv key("AWS_ACCESS_KEY_ID", "KEY"), secret("AWS_SECRET_ACCESS_KEY", "SECRET"),
      token("MLFLOW_TRACKING_TOKEN", "of the tracker"), url("MLFLOW_S3_ENDPOINT_URL", endpoint.c_str());
  tracker.artifact_uri = "s3://lab/5/abc 123/artifacts";
  const auto store = make_mlflow_server(tracker.server.url(), kHasty);
  const std::string id = store->create_run({.experiment = "x", .name = "a"});
  store->add_table(id, some_table("words"), 3);
  EXPECT_TRUE(artifacts_of(tracker).empty());
  const std::vector<SeenRequest> puts = artifacts_of(bucket);
  ASSERT_EQ(puts.size(), 1u);
  EXPECT_EQ(puts[0].path, "/lab/5/abc%20123/artifacts/tables/icl/words/step-000000003.json");
  EXPECT_EQ(Json::parse(puts[0].body), split_form(some_table("words")));
  EXPECT_TRUE(puts[0].headers.at("authorization").starts_with("AWS4-HMAC-SHA256 Credential=KEY/"));
  EXPECT_EQ(puts[0].headers.at("content-type"), "application/json");
  EXPECT_EQ(puts[0].headers.at("x-amz-content-sha256"), hex(sha256(puts[0].body)));
  EXPECT_EQ(tracker.sent("runs/set-tag").back().at("key"), "mlflow.loggedArtifacts");
  bucket.takes_artifacts = false;
  const std::string failure = failure_of([&] { store->add_table(id, some_table("words"), 4); });
  EXPECT_NE(failure.find("s3://lab/5/abc 123/artifacts/tables/icl/words/step-000000004.json: S3 answers 500"),
            std::string::npos)
      << failure;
  EXPECT_EQ(artifacts_of(bucket).size(), 5u);  // tries
}

TEST(MlflowServer, ArtifactsThatAreRefusedAreAnError) {
  TempDir dir;
  Tracker tracker(dir.path());
  tracker.takes_artifacts = false;
  const auto store = make_mlflow_server(tracker.server.url(), kHasty);
  const std::string id = store->create_run({.experiment = "x", .name = "a"});
  EXPECT_NE(failure_of([&] { store->add_table(id, some_table("words"), 3); }).find("500 (full)"),
            std::string::npos);
  EXPECT_EQ(artifacts_of(tracker).size(), 4u);  // tries
}

TEST(MlflowServer, ResumesTheSameRunWithoutDoublePoints) {
  TempDir dir;
  Tracker tracker(dir.path());
  run_attempt(dir.path(), mlflow_at(tracker.server.url()), {0, 4, "stopped by SIGTERM after step 4"});
  run_attempt(dir.path(), mlflow_at(tracker.server.url()), {2, 6});
  EXPECT_EQ(tracker.sent("runs/create").size(), 1u);
  EXPECT_EQ(tracker.points("loss"),
            (std::vector<std::string>{"1.1 1", "2.1 2", "3.1 3", "4.1 4", "5.2 5", "6.2 6"}));
  const std::vector<Json> updates = tracker.sent("runs/update");
  ASSERT_EQ(updates.size(), 3u);
  EXPECT_EQ(updates[0].at("status"), "KILLED");
  EXPECT_EQ(updates[1].at("status"), "RUNNING");
  EXPECT_EQ(updates[2].at("status"), "FINISHED");
}

TEST(MlflowServer, SendsWhatAKilledAttemptCouldNotSend) {
  TempDir dir;
  Tracker tracker(dir.path());
  std::vector<SinkConfig> sinks = mlflow_at(tracker.server.url());
  sinks.push_back(SinkConfig{{JsonlSinkConfig{}}});
  run_attempt(dir.path(), sinks, {0, 2});
  // Killed at step 5 with a checkpoint of step 4, and nothing sent since step 2.
  run_attempt(dir.path(), {SinkConfig{{JsonlSinkConfig{}}}}, {2, 5, ""});
  run_attempt(dir.path(), sinks, {4, 6});
  EXPECT_EQ(tracker.points("loss"),
            (std::vector<std::string>{"1.1 1", "2.1 2", "3.2 3", "4.2 4", "5.2 5", "6.2 6"}));
}

TEST(MlflowServer, ARequestHasAThousandPointsAtMost) {
  TempDir dir;
  Tracker tracker(dir.path());
  std::vector<MlflowPoint> points;
  for (int64_t step = 1; step <= 2500; ++step) points.push_back({"x", 0.5, 7, step});
  make_mlflow_server(tracker.server.url(), kHasty)->add_points("abc123", points);
  std::vector<size_t> sizes;
  for (const Json& body : tracker.sent("runs/log-batch")) sizes.push_back(body.at("metrics").size());
  EXPECT_EQ(sizes, (std::vector<size_t>{1000, 1000, 500}));
  make_mlflow_server(tracker.server.url(), kHasty)
      ->add_points("abc123", {{"y", NAN, 7, 1}, {"y", INFINITY, 7, 2}});
  EXPECT_EQ(tracker.points("y"), (std::vector<std::string>{"\"NaN\" 1", "\"Infinity\" 2"}));
}

TEST(MlflowServer, ARequestHasAHundredTagsAtMost) {
  TempDir dir;
  Tracker tracker(dir.path());
  MlflowRun run = {.experiment = "e", .name = "r"};
  for (int i = 0; i < 230; ++i) run.tags.emplace_back("tag" + std::to_string(i), "x");
  make_mlflow_server(tracker.server.url(), kHasty)->create_run(run);
  EXPECT_EQ(tracker.sent("runs/create").at(0).at("tags").size(), 100u);
  std::vector<size_t> sizes;
  for (const Json& body : tracker.sent("runs/log-batch")) sizes.push_back(body.at("tags").size());
  EXPECT_EQ(sizes, (std::vector<size_t>{100, 30}));
}

TEST(MlflowServer, TriesAgainWhereThatMayHelp) {
  TempDir dir;
  Tracker tracker(dir.path());
  const auto store = make_mlflow_server(tracker.server.url(), kHasty);
  tracker.failures_left = 1;
  EXPECT_EQ(store->create_run({.experiment = "e", .name = "r"}), "abc123");
  tracker.failures_left = 3;
  store->add_points("abc123", {{"x", 1, 7, 1}});
  EXPECT_EQ(tracker.points("x").size(), 4u);  // three of them in vain
  tracker.failures_left = 100;
  EXPECT_NE(failure_of([&] {
              store->add_points("abc123", {{"x", 1, 7, 2}});
            }).find("the server answers 503 (starting)"),
            std::string::npos);
  EXPECT_EQ(tracker.points("x").size(), 8u);
}

TEST(MlflowServer, SignsInFromTheEnvironmentAndNeverShowsTheCredentials) {
  TempDir dir;
  Tracker tracker(dir.path());
  tracker.needs = "Basic YWRtaW46Y29ycmVjdCBob3JzZQ==";  // admin:correct horse
  const std::string refused = failure_of([&] {
    run_attempt(dir.path(), mlflow_at(tracker.server.url()), {0, 1});
  });
  EXPECT_NE(refused.find("the server answers 401 (You are not authenticated.); set MLFLOW_TRACKING_USERNAME"),
            std::string::npos)
      << refused;
  {
    const ScopedEnv user("MLFLOW_TRACKING_USERNAME", "admin"),
        password("MLFLOW_TRACKING_PASSWORD", "correct horse");
    EXPECT_EQ(make_mlflow_server(tracker.server.url(), kHasty)->create_run({.experiment = "e", .name = "r"}),
              "abc123");
  }
  tracker.needs = "Bearer 0123456789abcdef";
  {
    const ScopedEnv token("MLFLOW_TRACKING_TOKEN", "0123456789abcdef");
    EXPECT_EQ(make_mlflow_server(tracker.server.url(), kHasty)->create_run({.experiment = "e", .name = "r"}),
              "abc123");
    tracker.server.set_fault([](const SeenRequest& request) {
      return ServerReply{403, request.headers.at("authorization") + " may not write"};
    });
    const std::string text = failure_of([&] {
      make_mlflow_server(tracker.server.url(), kHasty)->create_run({.experiment = "e", .name = "r"});
    });
    EXPECT_NE(text.find("Bearer *** may not write"), std::string::npos) << text;
    EXPECT_EQ(text.find("0123456789abcdef"), std::string::npos);
  }
  const ScopedEnv bad("MLFLOW_TRACKING_TOKEN", "two\nlines");
  EXPECT_NE(failure_of([&] { make_mlflow_server(tracker.server.url()); }).find("line break"),
            std::string::npos);
}

TEST(MlflowServer, ServersThatAreNotOneEndTheRunBeforeItsFirstStep) {
  TempDir dir;
  const ReservedPort nobody;
  const std::string url = "http://127.0.0.1:" + std::to_string(nobody.number());
  EXPECT_NE(failure_of([&] {
              make_mlflow_server(url, kHasty)->create_run({.experiment = "e", .name = "r"});
            }).find("[mlflow] " + url + ": "),
            std::string::npos);
  HttpServer other(dir.path());
  other.set_fault([](const SeenRequest&) { return ServerReply{200, "<html>"}; });
  EXPECT_NE(failure_of([&] {
              make_mlflow_server(other.url(), kHasty)->create_run({.experiment = "e", .name = "r"});
            }).find("does not answer as a tracking server"),
            std::string::npos);
  other.set_fault([](const SeenRequest&) { return ServerReply{200, "{\"ok\": 1}"}; });
  EXPECT_NE(failure_of([&] {
              make_mlflow_server(other.url(), kHasty)->create_run({.experiment = "e", .name = "r"});
            }).find("answers without /experiment/experiment_id"),
            std::string::npos);
  Tracker tracker(dir.path());
  EXPECT_NE(failure_of([&] {
              make_mlflow_server(tracker.server.url(), kHasty)->resume_run("gone");
            }).find("the server answers 404 (Run with id=x not found)"),
            std::string::npos);
}

TEST(MlflowServer, ACertificateThatIsNotTrustedIsSaidAtOnce) {
  TempDir dir;
  Tracker tracker(dir.path());
  const ScopedEnv certificates("MLFLOW_TRACKING_SERVER_CERT_PATH", (dir / "none.pem").c_str());
  const auto store = make_mlflow_server("https" + tracker.server.url().substr(4),
                                        {.start_tries = 1'000'000, .first_wait_s = 3600});
  const std::string failure = failure_of([&] { store->create_run({.experiment = "e", .name = "r"}); });
  EXPECT_NE(failure.find("none.pem: name another file"), std::string::npos) << failure;
}

TEST(MlflowServer, AStartWithNothingLeftToTrainEndsARunThatWasKilled) {
  TempDir dir;
  Tracker tracker(dir.path());
  run_attempt(dir.path(), mlflow_at(tracker.server.url()), {0, 4, ""});
  tracker.status = "RUNNING";  // as after a kill
  for (const size_t num_warnings : {1, 0}) {
    EXPECT_EQ(run_attempt(dir.path(), mlflow_at(tracker.server.url()), {4, 4}).warnings.size(), num_warnings);
    EXPECT_EQ(tracker.status, "FINISHED");
  }
}

TEST(MlflowServer, AServerThatHangsDoesNotHoldUpTheEnd) {
  TempDir dir;
  HttpServer server(dir.path());
  std::atomic<bool> asked = false;
  server.set_fault([&](const SeenRequest&) {
    asked = true;
    return ServerReply{.status = 200, .body = "{}", .hang_s = 600};
  });
  const auto store = make_mlflow_server(server.url(), {.timeout_s = 600});
  std::string failure;
  std::thread writer([&] { failure = failure_of([&] { store->add_points("abc123", {{"x", 1, 7, 1}}); }); });
  while (!asked) std::this_thread::yield();
  store->cancel();
  writer.join();
  EXPECT_NE(failure.find("stopped"), std::string::npos) << failure;
  EXPECT_NE(failure_of([&] { store->end_run("abc123", MlflowStatus::kFinished, 1); }), "");
}

}  // namespace
}  // namespace tycho
