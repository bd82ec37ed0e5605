// Composes requests and reads answers.
#include "trainer/loggers/wandb_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "trainer/base/error.h"
#include "trainer/base/text/base64.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/http/answer_line.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

constexpr const char* kResumeQuery =
    "query RunResumeStatus($project: String, $entity: String, $name: String!) {"
    " model(name: $project, entityName: $entity) { id name entity { id name }"
    " bucket(name: $name, missingOk: true) { id name summaryMetrics logLineCount historyLineCount"
    " eventsLineCount historyTail eventsTail config } } }";
constexpr const char* kUpsertQuery =
    "mutation UpsertBucket($id: String, $name: String, $project: String, $entity: String, $groupName: String,"
    " $displayName: String, $config: JSONString, $host: String, $program: String, $tags: [String!]) {"
    " upsertBucket(input: {id: $id, name: $name, groupName: $groupName, modelName: $project,"
    " entityName: $entity, displayName: $displayName, config: $config, host: $host, jobProgram: $program,"
    " tags: $tags}) {"
    " bucket { id name project { id name entity { id name } } historyLineCount } inserted } }";
constexpr const char* kFilesQuery =
    "mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {"
    " createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {"
    " runID uploadHeaders files { name uploadUrl } } }";

constexpr const char* kAlertQuery =
    "mutation NotifyScriptableRunAlert($entityName: String!, $projectName: String!, $runName: String!,"
    " $title: String!, $text: String!, $severity: AlertSeverity = INFO, $waitDuration: Duration) {"
    " notifyScriptableRunAlert(input: {entityName: $entityName, projectName: $projectName, runName: $runName,"
    " title: $title, text: $text, severity: $severity, waitDuration: $waitDuration}) { success } }";
constexpr const char* kCreateArtifactQuery =
    "mutation CreateArtifact($input: CreateArtifactInput!) { createArtifact(input: $input) {"
    " artifact { id state artifactSequence { latestArtifact { id } } } } }";
constexpr const char* kManifestQuery =
    "mutation CreateArtifactManifest($artifactID: ID!, $baseArtifactID: ID, $name: String!, $digest: String!,"
    " $entityName: String!, $projectName: String!, $runName: String!, $manifestType: ArtifactManifestType!,"
    " $includeUpload: Boolean!) { createArtifactManifest(input: {artifactID: $artifactID,"
    " baseArtifactID: $baseArtifactID, name: $name, digest: $digest, entityName: $entityName,"
    " projectName: $projectName, runName: $runName, type: $manifestType}) { artifactManifest { id file {"
    " id uploadUrl @include(if: $includeUpload) uploadHeaders @include(if: $includeUpload) } } } }";
constexpr const char* kCommitQuery =
    "mutation CommitArtifact($artifactID: ID!) { commitArtifact(input: {artifactID: $artifactID}) {"
    " artifact { id digest } } }";

bool may_help_again(const HttpAnswer& answer) { return answer.may_pass() || answer.status == 409; }

Json null_if_empty(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// Returns a value inside an answer, null when it is not there.
Json value_at(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  return json.contains(pointer) ? json.at(pointer) : Json();
}

int64_t count_at(const Json& json, const char* name) {
  const Json value = json.value(name, Json());
  return value.is_number() ? value.get<int64_t>() : 0;
}

std::string text_at(const Json& json, const char* name) {
  const Json value = json.value(name, Json());
  return value.is_string() ? value.get<std::string>() : "";
}

/// Reads JSON that is a text inside JSON; null when there is none, or one with NaN.
Json json_in(const Json& json, const char* name) {
  return Json::parse(text_at(json, name), nullptr, /*allow_exceptions=*/false);
}

/// Returns a number of the last line in a tail, a list of rows. Rows may hold NaN, so they are not parsed.
std::optional<double> number_in_tail(const Json& tail, const std::string& name) {
  if (!tail.is_array() || tail.empty() || !tail.back().is_string()) return std::nullopt;
  const auto row = tail.back().get<std::string>();
  const size_t found = row.rfind("\"" + name + "\"");
  if (found == std::string::npos) return std::nullopt;
  const size_t at = row.find(':', found);
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(row.c_str() + at + 1, &end);
  return end == row.c_str() + at + 1 ? std::nullopt : std::optional(value);
}

/// Returns the config in the form of W&B: each key with a value, and what marks a run that was begun.
Json wandb_config(const Json& config, const Json& remote) {
  Json all = remote.is_object() ? remote : Json::object();
  for (const auto& [key, value] : config.items()) all[key] = {{"value", value}};
  if (!all.contains("_wandb"))
    all["_wandb"] = {{"value", {{"t", {{"13", "linux-x86_64"}}}, {"m", Json::array()}}}};
  return all;
}

}  // namespace

HttpAnswer WandbServer::exchanged(HttpCall call) {
  constexpr double kSlowestBytesPerS = 1e5;
  call.timeout_s = timeout_s_ + static_cast<double>(call.body.size()) / kSlowestBytesPerS;
  HttpAnswer answer = http_exchange(call, stop_.get_token());
  wait_s_ = answer.wait_s;
  status_ = answer.status;
  return answer;
}

void WandbServer::refuse(const HttpAnswer& answer, const std::string& what) const {
  const ExitCode code = may_help_again(answer) ? ExitCode::kStorage : ExitCode::kUnusable;
  if (answer.status == 0)
    fail(code, "[wandb] {}: {}{}", settings_.url, answer.problem,
         answer.is_untrusted ? "" : "; does this machine reach it, and is WANDB_BASE_URL right?");
  const Json body = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  std::string text = answer.body;
  if (body.is_object() && body.contains("errors") && body["errors"].is_array() && !body["errors"].empty() &&
      body["errors"][0].is_object())
    text = text_at(body["errors"][0], "message");
  else if (body.is_object() && body.contains("error") && body["error"].is_string())
    text = text_at(body, "error");
  const bool is_key = answer.status == 401 || answer.status == 403;
  fail(code, "[wandb] {} answers {} to {} ({}){}", settings_.url, answer.status, what, answer_line(text),
       is_key ? "; the key has expired or may not write there: set WANDB_API_KEY to one that may" : "");
}

Json WandbServer::ask(const char* name, const char* query, const Json& variables) {
  const Json body = {{"query", query}, {"variables", variables}, {"operationName", name}};
  HttpAnswer answer = exchanged({.method = "POST",
                                 .url = settings_.url + "/graphql",
                                 .headers = {"Content-Type: application/json", settings_.authorization},
                                 .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)});
  const Json parsed = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (answer.status != 200) refuse(answer, name);
  const Json data = parsed.is_object() ? parsed.value("data", Json()) : Json();
  if (!data.is_object() || (parsed.contains("errors") && !parsed["errors"].empty())) {
    answer.status = parsed.is_object() ? 400 : 502;  // a page in place of an answer is a proxy's
    refuse(answer, name);
  }
  return data;
}

std::string WandbServer::read_remote(const WandbRun& run) {
  const Json found =
      value_at(ask("RunResumeStatus", kResumeQuery,
                   {{"project", run.project}, {"entity", null_if_empty(settings_.entity)}, {"name", run.id}}),
               "/model/bucket");
  remote_ = {};
  remote_config_ = Json::object();
  if (!found.is_object()) return "";
  remote_.history_lines = count_at(found, "historyLineCount");
  remote_.event_lines = count_at(found, "eventsLineCount");
  remote_.log_lines = count_at(found, "logLineCount");
  if (const auto step = number_in_tail(json_in(found, "historyTail"), "_step"))
    remote_.last_step = static_cast<int64_t>(*step);
  remote_.last_event_s = number_in_tail(json_in(found, "eventsTail"), "_timestamp");
  if (Json summary = json_in(found, "summaryMetrics"); summary.is_object())
    remote_.summary = std::move(summary);
  if (Json config = json_in(found, "config"); config.is_object()) remote_config_ = std::move(config);
  return text_at(found, "id");
}

// On a resume, what people have changed on the run's page stays: its name, group and tags.
WandbRemoteRun WandbServer::open(const WandbRun& run) {
  id_ = run.id;
  const std::string remote_id = read_remote(run);
  const bool is_new = remote_id.empty();
  Json values = {
      {"id", null_if_empty(remote_id)},
      {"name", run.id},
      {"project", run.project},
      {"entity", null_if_empty(settings_.entity)},
      {"config",
       wandb_config(run.config, remote_config_).dump(-1, ' ', false, Json::error_handler_t::replace)},
      {"host", run.host},
      {"program", "tycho"}};
  if (is_new) {
    values["groupName"] = null_if_empty(run.group);
    values["displayName"] = run.name;
    values["tags"] = run.tags;
  }
  const Json project = value_at(ask("UpsertBucket", kUpsertQuery, values), "/upsertBucket/bucket/project");
  const Json entity = value_at(project, "/entity/name");
  remote_.entity = entity.is_string() ? entity.get<std::string>() : settings_.entity;
  remote_.project = project.is_object() ? text_at(project, "name") : "";
  if (remote_.project.empty()) remote_.project = run.project;
  if (remote_.entity.empty())
    fail(
        ExitCode::kUnusable,
        "[wandb] {} does not answer as a server of W&B does: the run has no entity; is WANDB_BASE_URL right?",
        settings_.url);
  return remote_;
}

void WandbServer::stream(const Json& body) {
  const HttpAnswer answer = exchanged(
      {.method = "POST",
       .url = fmt::format("{}/files/{}/{}/{}/file_stream", settings_.url, percent_encoded(remote_.entity),
                          percent_encoded(remote_.project), percent_encoded(id_)),
       .headers = {"Content-Type: application/json", settings_.authorization},
       .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)});
  if (answer.status != 200) refuse(answer, "file_stream");
}

void WandbServer::alert(const WandbAlertEntry& alert) {
  constexpr int64_t kWait_ms = 60'000;  // between two alerts of one title
  ask("NotifyScriptableRunAlert", kAlertQuery,
      {{"entityName", remote_.entity},
       {"projectName", remote_.project},
       {"runName", id_},
       {"title", alert.title},
       {"text", alert.text},
       {"severity", alert.level.empty() ? "INFO" : alert.level},
       {"waitDuration", kWait_ms}});
}

std::string WandbServer::create(const WandbArtifact& artifact) {
  Json aliases = Json::array();
  for (const std::string& alias : artifact.aliases)
    aliases.push_back({{"artifactCollectionName", artifact.name}, {"alias", alias}});
  const Json made = value_at(ask("CreateArtifact", kCreateArtifactQuery,
                                 {{"input",
                                   {{"entityName", remote_.entity},
                                    {"projectName", remote_.project},
                                    {"runName", id_},
                                    {"artifactTypeName", artifact.type},
                                    {"artifactCollectionName", artifact.name},
                                    {"digest", artifact.digest},
                                    {"digestAlgorithm", "MANIFEST_MD5"},
                                    {"aliases", aliases},
                                    {"metadata", artifact.metadata.dump()},
                                    {"clientID", wandb_client_id(id_ + artifact.name + artifact.digest)},
                                    {"sequenceClientID", wandb_client_id(id_ + artifact.name)},
                                    {"enableDigestDeduplication", true}}}}),
                             "/createArtifact/artifact");
  if (!made.is_object() || text_at(made, "id").empty())
    fail(ExitCode::kUnusable, "[wandb] {} does not create the artifact {}", settings_.url, artifact.name);
  return text_at(made, "state") == "COMMITTED" ? "" : text_at(made, "id");
}

void WandbServer::store(const WandbArtifact& artifact) {
  const std::string id = create(artifact);
  if (id.empty()) return;
  std::string manifest = wandb_manifest(artifact);
  const Json file = value_at(ask("CreateArtifactManifest", kManifestQuery,
                                 {{"artifactID", id},
                                  {"baseArtifactID", nullptr},
                                  {"name", "wandb_manifest.json"},
                                  {"digest", base64(content_md5(manifest))},
                                  {"entityName", remote_.entity},
                                  {"projectName", remote_.project},
                                  {"runName", id_},
                                  {"manifestType", "FULL"},
                                  {"includeUpload", true}}),
                             "/createArtifactManifest/artifactManifest/file");
  WandbUploadTarget target = {"wandb_manifest.json", file.is_object() ? text_at(file, "uploadUrl") : "", {}};
  for (const Json& header : value_at(file, "/uploadHeaders"))
    if (header.is_string()) target.headers.push_back(header.get<std::string>());
  if (target.url.empty())
    fail(ExitCode::kUnusable, "[wandb] {} gives no address for the manifest of {}", settings_.url,
         artifact.name);
  put(target, std::move(manifest));
  ask("CommitArtifact", kCommitQuery, {{"artifactID", id}});
}

std::vector<WandbUploadTarget> WandbServer::targets(const std::vector<std::string>& names) {
  const Json made = value_at(
      ask("CreateRunFiles", kFilesQuery,
          {{"entity", remote_.entity}, {"project", remote_.project}, {"run", id_}, {"files", names}}),
      "/createRunFiles");
  std::vector<std::string> headers;
  for (const Json& header : value_at(made, "/uploadHeaders"))
    if (header.is_string()) headers.push_back(header.get<std::string>());
  std::vector<WandbUploadTarget> targets;
  for (const Json& file : value_at(made, "/files"))
    if (file.is_object()) targets.push_back({text_at(file, "name"), text_at(file, "uploadUrl"), headers});
  return targets;
}

// The address is signed: the key is not for whoever stores the files.
void WandbServer::put(const WandbUploadTarget& target, std::string bytes) {
  const std::string url = target.url.starts_with('/') ? settings_.url + target.url : target.url;
  std::vector<std::string> headers = target.headers;
  if (target.url.starts_with('/')) headers.push_back(settings_.authorization);
  headers.emplace_back("Content-Type:");  // or libcurl would say that it is a form
  const HttpAnswer answer =
      exchanged({.method = "PUT", .url = url, .headers = std::move(headers), .body = std::move(bytes)});
  if (answer.status >= 200 && answer.status < 300) return;
  // An address that has expired is one to ask for again.
  fail(answer.is_untrusted ? ExitCode::kUnusable : ExitCode::kStorage, "[wandb] cannot store {}: {}",
       target.name,
       answer.status == 0 ? answer.problem : fmt::format("{} ({})", answer.status, answer_line(answer.body)));
}

}  // namespace tycho
