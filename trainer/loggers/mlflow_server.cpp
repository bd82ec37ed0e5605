// A tracking server of MLflow over its REST API, version 2.0.
// https://mlflow.org/docs/latest/api_reference/rest-api.html
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/hmac.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/base64.h"
#include "trainer/data/storage/s3_request.h"
#include "trainer/http/answer_line.h"
#include "trainer/http/http_exchange.h"
#include "trainer/identities/aws_identity.h"
#include "trainer/loggers/mlflow_store.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

// The most that a server accepts in one request of runs/log-batch.
constexpr size_t kMostMetrics = 1000, kMostTexts = 100;
constexpr std::string_view kS3 = "s3://";

/// Returns the header that signs in; "" when the environment has no credentials.
std::string authorization() {
  const std::string token = environment_variable("MLFLOW_TRACKING_TOKEN");
  const std::string user = environment_variable("MLFLOW_TRACKING_USERNAME"),
                    password = environment_variable("MLFLOW_TRACKING_PASSWORD");
  register_secret(token);
  register_secret(password);
  const std::string pair = base64(user + ":" + password);
  register_secret(pair);
  for (const std::string& value : {token, user, password})
    if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 127; }))
      fail(ExitCode::kStorage,
           "[mlflow] a variable MLFLOW_TRACKING_TOKEN, _USERNAME or _PASSWORD has a line break or another "
           "control character in it; set it again");
  if (!user.empty()) return "Authorization: Basic " + pair;
  return token.empty() ? "" : "Authorization: Bearer " + token;
}

/// Returns a number in Protocol Buffers' JSON, which has words for values that JSON's numbers lack.
Json json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json pairs(const MlflowTexts& texts, size_t begin, size_t end) {
  Json list = Json::array();
  for (size_t i = begin; i < std::min(end, texts.size()); ++i)
    list.push_back({{"key", texts[i].first}, {"value", texts[i].second}});
  return list;
}

/// Returns the message of a failed answer, as one line.
std::string text_of(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.problem;
  const Json body = Json::parse(answer.body, nullptr, false);
  const std::string text = body.is_object() && body.contains("message") && body["message"].is_string()
                               ? body["message"].get<std::string>()
                               : answer.body;
  std::string shown = fmt::format("the server answers {} ({})", answer.status, answer_line(text));
  if (answer.status == 401 || answer.status == 403)
    shown +=
        "; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, to those of "
        "an account that may write";
  return shown;
}

class MlflowServer final : public MlflowStore {
 public:
  MlflowServer(const std::string& url, const MlflowPatience& patience)
      : url_(url), authorization_(authorization()), patience_(patience), tries_(patience.start_tries) {
    while (url_.ends_with('/')) url_.pop_back();
  }

  std::string create_run(const MlflowRun& run) override {
    const Json created = ask("runs/create", {{"experiment_id", experiment_id(run.experiment)},
                                             {"start_time", run.start_ms},
                                             {"run_name", run.name},
                                             {"user_id", run.user},
                                             {"tags", pairs(run.tags, 0, kMostTexts)}});
    const std::string id = text_at(created, "/run/info/run_id");
    take_artifact_uri(created);
    for (size_t i = kMostTexts; i < run.tags.size(); i += kMostTexts)
      ask("runs/log-batch", {{"run_id", id}, {"tags", pairs(run.tags, i, i + kMostTexts)}});
    for (size_t i = 0; i < run.params.size(); i += kMostTexts)
      ask("runs/log-batch", {{"run_id", id}, {"params", pairs(run.params, i, i + kMostTexts)}});
    tries_ = patience_.tries;
    return id;
  }

  bool is_running(const std::string& id) override {
    const Json got = ask("runs/get?run_id=" + percent_encoded(id));
    return got.value(Json::json_pointer("/run/info/status"), "") == "RUNNING";
  }

  std::map<std::string, int64_t> resume_run(const std::string& id) override {
    const Json got = ask("runs/get?run_id=" + percent_encoded(id));
    if (text_at(got, "/run/info/lifecycle_stage") != "active")
      fail(ExitCode::kStorage, "[mlflow] {}: the run {} was deleted; restore it there", url_, id);
    std::map<std::string, int64_t> last;
    const Json metrics = got.value(Json::json_pointer("/run/data/metrics"), Json::array());
    for (const Json& metric : metrics) {
      const Json& step = metric.value("step", Json(0));
      // Whole numbers of 64 bits are texts in some servers' JSON.
      last[metric.value("key", "")] =
          step.is_string() ? std::strtoll(step.get<std::string>().c_str(), nullptr, 10) : step.get<int64_t>();
    }
    for (const Json& tag : got.value(Json::json_pointer("/run/data/tags"), Json::array()))
      if (tag.value("key", "") == MlflowTables::kTag) tables_.read(tag.value("value", ""));
    take_artifact_uri(got);
    ask("runs/update", {{"run_id", id}, {"status", "RUNNING"}});
    tries_ = patience_.tries;
    return last;
  }

  void add_points(const std::string& id, const std::vector<MlflowPoint>& points) override {
    for (size_t begin = 0; begin < points.size(); begin += kMostMetrics) {
      Json metrics = Json::array();
      for (size_t i = begin; i < std::min(points.size(), begin + kMostMetrics); ++i)
        metrics.push_back({{"key", points[i].key},
                           {"value", json_number(points[i].value)},
                           {"timestamp", points[i].time_ms},
                           {"step", points[i].step}});
      ask("runs/log-batch", {{"run_id", id}, {"metrics", std::move(metrics)}});
    }
  }

  void add_table(const std::string& id, const NamedTable& table, int64_t step) override {
    if (const std::string obstacle = artifact_obstacle(); !obstacle.empty())
      return set_tag(id, "tycho.tables",
                     fmt::format("not sent: the artifacts of this run are at {}, {}; they are in {} of the "
                                 "run's folder",
                                 artifact_uri_, obstacle, table.file));
    const std::string path = tables_.add(table.name, step),
                      text = split_form(table).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (artifact_path_.empty())
      put_in_s3(path, text);
    else if (const HttpAnswer answer =
                 exchanged({.method = "PUT",
                            .url = fmt::format("{}/api/2.0/mlflow-artifacts/artifacts/{}/{}", url_,
                                               artifact_path_, url_path(path)),
                            .body = text});
             answer.status != 200)
      refuse(answer);
    set_tag(id, MlflowTables::kTag, tables_.tag());
  }

  void end_run(const std::string& id, MlflowStatus status, int64_t end_ms) override {
    const char* word = status == MlflowStatus::kFinished ? "FINISHED"
                       : status == MlflowStatus::kFailed ? "FAILED"
                                                         : "KILLED";
    ask("runs/update", {{"run_id", id}, {"status", word}, {"end_time", end_ms}});
  }

  void cancel() override { stop_.request_stop(); }

 private:
  /// Returns why artifacts of the run cannot be written; "" when they can.
  std::string artifact_obstacle() {
    if (!artifact_path_.empty()) return "";
    if (!artifact_uri_.starts_with(kS3)) return "which neither goes through the server nor is S3";
    if (!s3_) {
      s3_ = find_aws_settings();
      if (const std::string url = environment_variable("MLFLOW_S3_ENDPOINT_URL"); !url.empty())
        s3_->endpoint = url.ends_with('/') ? url.substr(0, url.size() - 1) : url;
    }
    const std::string lack = aws_identity(stop_.get_token()).lack;
    return lack.empty() ? "" : "and there are no AWS credentials here: " + lack;
  }

  /// Writes to S3 like MLflow's own client, when the server is not a proxy for artifacts.
  void put_in_s3(const std::string& path, const std::string& text) {
    const HttpAnswer answer = tried([&] {
      S3Request put =
          s3_request(*s3_, parse_remote(artifact_uri_),
                     {.method = "PUT", .name = path, .body_sha256 = hex(sha256(text))}, stop_.get_token());
      put.headers.emplace_back("Content-Type: application/json");  // or libcurl would say that it is a form
      return http_exchange({.method = "PUT",
                            .url = std::move(put.url),
                            .headers = std::move(put.headers),
                            .body = text,
                            .timeout_s = patience_.timeout_s,
                            .ca_file = s3_->ca_file},
                           stop_.get_token());
    });
    if (answer.status != 200)
      fail(ExitCode::kStorage, "[mlflow] expected to write {}/{}: {}", artifact_uri_, path,
           answer.status == 0
               ? answer.problem
               : fmt::format("S3 answers {}; do the AWS credentials here allow s3:PutObject there?",
                             answer.status));
  }

  void set_tag(const std::string& id, const std::string& key, const std::string& value) {
    ask("runs/set-tag", {{"run_id", id}, {"key", key}, {"value", value}});
  }

  /// Sets the path of the run's artifacts on the server: the text after "mlflow-artifacts:/".
  void take_artifact_uri(const Json& run) {
    artifact_uri_ = run.value(Json::json_pointer("/run/info/artifact_uri"), "");
    constexpr std::string_view kProxied = "mlflow-artifacts:/";
    if (!artifact_uri_.starts_with(kProxied) || artifact_uri_.starts_with("mlflow-artifacts://")) return;
    artifact_path_ = url_path(artifact_uri_.substr(kProxied.size()));
  }

  /// Returns a path with each of its parts encoded.
  static std::string url_path(const std::string& path) {
    std::string encoded;
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, '/');)
      if (!part.empty()) encoded += (encoded.empty() ? "" : "/") + percent_encoded(part);
    return encoded;
  }

  std::string experiment_id(const std::string& name) {
    const std::string by_name = "experiments/get-by-name?experiment_name=" + percent_encoded(name);
    if (const HttpAnswer found = answer_of(by_name, nullptr); found.status == 200)
      return text_at(parsed(found), "/experiment/experiment_id");
    else if (found.status != 404)
      refuse(found);
    const HttpAnswer created = answer_of("experiments/create", {{"name", name}});
    if (created.status == 200) return text_at(parsed(created), "/experiment_id");
    // Another run may have made it meanwhile.
    const HttpAnswer again = answer_of(by_name, nullptr);
    if (again.status != 200) refuse(created);
    return text_at(parsed(again), "/experiment/experiment_id");
  }

  Json ask(const std::string& call, const Json& body = nullptr) {
    const HttpAnswer answer = answer_of(call, body);
    if (answer.status != 200) refuse(answer);
    return parsed(answer);
  }

  /// Sends a POST with a body, a GET when it is null.
  HttpAnswer answer_of(const std::string& call, const Json& body) {
    return exchanged(
        {.method = body.is_null() ? "GET" : "POST",
         .url = url_ + "/api/2.0/mlflow/" + call,
         .body = body.is_null() ? "" : body.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }

  /// Signs in and sends a request. Waits and tries again where that may help.
  HttpAnswer exchanged(HttpCall request) {
    request.headers.emplace_back("Content-Type: application/json");
    request.timeout_s = patience_.timeout_s;
    request.ca_file = environment_variable("MLFLOW_TRACKING_SERVER_CERT_PATH");
    if (!authorization_.empty()) request.headers.push_back(authorization_);
    return tried([&] { return http_exchange(request, stop_.get_token()); });
  }

  /// Returns the answer of a request, which is repeated where that may help.
  HttpAnswer tried(const std::function<HttpAnswer()>& exchange) {
    double wait_s = patience_.first_wait_s;
    for (int tries = 1;; ++tries) {
      const HttpAnswer answer = exchange();
      if (!answer.may_pass() || tries >= tries_ || stop_.stop_requested()) return answer;
      std::unique_lock lock(mutex_);
      changed_.wait_for(
          lock, stop_.get_token(),
          std::chrono::duration<double>(std::min(std::max(wait_s, answer.wait_s), patience_.longest_wait_s)),
          [] { return false; });
      wait_s *= 2;
    }
  }

  [[noreturn]] void refuse(const HttpAnswer& answer) const {
    fail(ExitCode::kStorage, "[mlflow] {}: {}", url_, text_of(answer));
  }

  Json parsed(const HttpAnswer& answer) const {
    Json json = Json::parse(answer.body, nullptr, false);
    if (!json.is_object())
      fail(ExitCode::kStorage,
           "[mlflow] {} does not answer as a tracking server of MLflow does; is the address right?", url_);
    return json;
  }

  std::string text_at(const Json& json, const char* path) const {
    const Json value = json.value(Json::json_pointer(path), Json());
    if (!value.is_string())
      fail(ExitCode::kStorage,
           "[mlflow] {} answers without {}, which a tracking server of MLflow has; is the address right?",
           url_, path);
    return value.get<std::string>();
  }

  std::string url_;
  const std::string authorization_;
  const MlflowPatience patience_;
  int tries_;
  std::string artifact_uri_,
      artifact_path_;              // of the run; the path is empty when the server takes no artifacts
  std::optional<AwsSettings> s3_;  // set when the first table is to be written there
  MlflowTables tables_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
};

}  // namespace

std::unique_ptr<MlflowStore> make_mlflow_server(const std::string& url, const MlflowPatience& patience) {
  return std::make_unique<MlflowServer>(url, patience);
}

}  // namespace tycho
