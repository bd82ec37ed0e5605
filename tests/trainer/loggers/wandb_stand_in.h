// A server of W&B for tests: it keeps runs as W&B does, rows by their place, answers calls that it does not
// know with 501, and can be told to fail before or after it has stored a request.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/trainer/data/storage/http_server.h"
#include "trainer/base/json.h"

namespace tycho::testing {

/// A run on the server.
struct StoredRun {
  std::string id, name, group, host;
  Json config, tags = Json::array();
  std::vector<std::string> history, events, console;
  std::string summary;
  std::vector<int> exit_codes;
  int beats = 0;
  std::map<std::string, std::string> files;
  std::vector<Json> alerts;
  std::vector<Json> artifacts;  // "input" of CreateArtifact, with "state" and "manifest"
};

class WandbStandIn {
 public:
  /// Fate of a request.
  enum class Fate { kAnswer, kLoseRequest, kLoseAnswer, kHang, kStoreAndHang, k500, k429, k401 };

  explicit WandbStandIn(const std::string& folder) : server_(folder) {
    server_.set_fault([this](const SeenRequest& request) { return reply(request); });
  }
  std::string url() const { return server_.url(); }
  /// Decides about each request by its number, from 0.
  void set_fate(std::function<Fate(int)> fate) {
    const std::lock_guard lock(mutex_);
    fate_ = std::move(fate);
    num_requests_ = 0;
  }
  /// Calls `watch` with the number of each request that has been stored, and the request. From any thread.
  void set_watch(std::function<void(int, const SeenRequest&)> watch) {
    const std::lock_guard lock(mutex_);
    watch_ = std::move(watch);
  }
  /// Makes it a server that knows neither alerts nor artifacts.
  void forget_events() {
    const std::lock_guard lock(mutex_);
    has_events_ = false;
  }
  StoredRun run() {
    const std::lock_guard lock(mutex_);
    return run_;
  }
  std::vector<std::string> unknown() {
    const std::lock_guard lock(mutex_);
    return unknown_;
  }
  int num_requests() {
    const std::lock_guard lock(mutex_);
    return num_requests_;
  }
  std::vector<SeenRequest> requests() const { return server_.requests(); }

 private:
  ServerReply reply(const SeenRequest& request) {
    Fate fate = Fate::kAnswer;
    const int number = [&] {
      const std::lock_guard lock(mutex_);
      if (fate_) fate = fate_(num_requests_);
      return num_requests_++;
    }();
    if (fate == Fate::k500) return {500, "oops"};
    if (fate == Fate::k429) return {429, "slow down", {"Retry-After: 1"}};
    if (fate == Fate::k401) return {401, R"({"errors": [{"message": "user is not logged in"}]})"};
    if (fate == Fate::kHang) return {200, "{}", {}, -1, 3600};
    if (fate == Fate::kLoseRequest) return {200, "{}", {}, 0};
    const std::lock_guard lock(mutex_);
    ServerReply answer = stored(request);
    if (watch_) watch_(number, request);
    if (fate == Fate::kLoseAnswer) answer.cut_at = 0;
    if (fate == Fate::kStoreAndHang) answer.hang_s = 3600;
    answer.ranges = false;
    return answer;
  }

  ServerReply stored(const SeenRequest& request) {
    if (request.method == "PUT" && request.path.starts_with("/storage/")) {
      const std::string name = request.path.substr(9, request.path.find('?') - 9);
      run_.files[name] = request.body;
      if (name.starts_with("artifact/"))
        run_.artifacts.at(std::stoul(name.substr(9)))["manifest"] = Json::parse(request.body);
      return {201, ""};
    }
    if (request.path == "/files/alice/proj/" + run_.id + "/file_stream")
      return stream(Json::parse(request.body));
    if (request.path == "/graphql") {
      const Json body = Json::parse(request.body);
      const auto name = body.value("operationName", "");
      const Json values = body.value("variables", Json::object());
      if (name == "RunResumeStatus") return data(resume_status(values));
      if (name == "UpsertBucket") return data(upsert(values));
      if (name == "CreateRunFiles") return data(targets(values));
      if (has_events_ && name == "NotifyScriptableRunAlert") return data(alert(values));
      if (has_events_ && name == "CreateArtifact") return data(create(values.at("input")));
      if (has_events_ && name == "CreateArtifactManifest") return data(manifest(values));
      if (has_events_ && name == "CommitArtifact") return data(commit(values));
    }
    unknown_.push_back(request.method + " " + request.path + " " + request.body);
    return {501, "unknown"};
  }

  static ServerReply data(const Json& json) { return {200, Json{{"data", json}}.dump()}; }

  Json resume_status(const Json& values) {
    if (run_.id != values.at("name")) return {{"model", nullptr}};
    Json history_tail = Json::array(), events_tail = Json::array();
    if (!run_.history.empty()) history_tail.push_back(run_.history.back());
    if (!run_.events.empty()) events_tail.push_back(run_.events.back());
    return {{"model",
             {{"bucket",
               {{"id", "id-" + run_.id},
                {"name", run_.id},
                {"historyLineCount", run_.history.size()},
                {"eventsLineCount", run_.events.size()},
                {"logLineCount", run_.console.size()},
                {"historyTail", history_tail.dump()},
                {"eventsTail", events_tail.dump()},
                {"summaryMetrics", run_.summary},
                {"config", run_.config.dump()}}}}}};
  }

  Json upsert(const Json& values) {
    const bool inserted = run_.id.empty();
    run_.id = values.at("name");
    run_.config = Json::parse(values.at("config").get<std::string>());
    if (values.contains("tags")) run_.tags = values["tags"];
    if (values.contains("displayName")) run_.name = values["displayName"];
    return {{"upsertBucket",
             {{"bucket",
               {{"id", "id-" + run_.id},
                {"project", {{"name", values.at("project")}, {"entity", {{"name", "alice"}}}}}}},
              {"inserted", inserted}}}};
  }

  Json alert(const Json& values) {
    run_.alerts.push_back(values);
    return {{"notifyScriptableRunAlert", {{"success", true}}}};
  }

  Json create(Json input) {
    size_t id = 0;
    while (id < run_.artifacts.size() && run_.artifacts[id].at("digest") != input.at("digest")) ++id;
    if (id == run_.artifacts.size()) {
      input["state"] = "PENDING";
      run_.artifacts.push_back(std::move(input));
    }
    return {{"createArtifact",
             {{"artifact", {{"id", std::to_string(id)}, {"state", run_.artifacts[id].at("state")}}}}}};
  }

  Json manifest(const Json& values) {
    const std::string url = server_.url() + "/storage/artifact/" +
                            values.at("artifactID").get<std::string>() + "?signature=s3cr3t";
    const Json file = {{"id", "f"}, {"uploadUrl", url}, {"uploadHeaders", Json::array()}};
    return {{"createArtifactManifest", {{"artifactManifest", {{"id", "m"}, {"file", file}}}}}};
  }

  Json commit(const Json& values) {
    run_.artifacts.at(std::stoul(values.at("artifactID").get<std::string>()))["state"] = "COMMITTED";
    return {{"commitArtifact", {{"artifact", {{"id", values.at("artifactID")}}}}}};
  }

  Json targets(const Json& values) {
    Json files = Json::array();
    for (const auto& name : values.at("files"))
      files.push_back(
          {{"name", name},
           {"uploadUrl", server_.url() + "/storage/" + name.get<std::string>() + "?signature=s3cr3t"}});
    return {{"createRunFiles", {{"runID", "x"}, {"uploadHeaders", Json::array()}, {"files", files}}}};
  }

  ServerReply stream(const Json& body) {
    if (body.empty()) ++run_.beats;
    const Json files = body.value("files", Json::object());
    for (const auto& [name, part] : files.items()) {
      const auto lines = part.at("content").get<std::vector<std::string>>();
      auto at = part.at("offset").get<size_t>();
      if (name == "wandb-summary.json") {
        run_.summary = lines.back();
        continue;
      }
      std::vector<std::string>& stored = name == "wandb-history.jsonl"  ? run_.history
                                         : name == "wandb-events.jsonl" ? run_.events
                                                                        : run_.console;
      for (const std::string& line : lines) {
        if (at >= stored.size()) stored.resize(at + 1);
        stored[at++] = line;
      }
    }
    if (body.value("complete", false)) run_.exit_codes.push_back(body.at("exitcode"));
    return {200, "{}"};
  }

  std::mutex mutex_;
  std::function<Fate(int)> fate_;
  std::function<void(int, const SeenRequest&)> watch_;
  int num_requests_ = 0;
  bool has_events_ = true;
  StoredRun run_;
  std::vector<std::string> unknown_;
  HttpServer server_;
};

}  // namespace tycho::testing
