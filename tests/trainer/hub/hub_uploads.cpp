// Calls come one at a time: HubServer holds its lock while these functions run.
#include "tests/trainer/hub/hub_uploads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "trainer/base/hmac.h"

namespace tycho::testing {
namespace {

std::string header_of(const SeenRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

/// Returns the bytes of base64.
std::string from_base64(const std::string& text) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xff);
  }
  return bytes;
}

bool is_large(const std::string& path) { return path.ends_with(".safetensors") || path.ends_with(".bin"); }

std::string plain(std::string branch) {
  for (size_t at; (at = branch.find("%2F")) != std::string::npos;) branch.replace(at, 3, "/");
  return branch;
}

ServerReply json_reply(const Json& body, int status = 200) {
  return {.status = status, .body = body.dump(), .headers = {"Content-Type: application/json"}};
}

Json body_of(const SeenRequest& request) {
  const std::string type = header_of(request, "content-type");
  if (type.find("ndjson") != std::string::npos) {
    Json lines = Json::array();
    std::istringstream in(request.body);
    for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  if (type.find("json") != std::string::npos) return Json::parse(request.body);
  return request.body;
}

}  // namespace

HubUploads::HubUploads(HubServer& server) : server_(server) { set_fault({}); }

void HubUploads::set_fault(Fault at_first, Fault at_second) {
  server_.set_faults(
      [this, fault = std::move(at_first)](const SeenRequest& request) -> std::optional<ServerReply> {
        note("hub", request);
        if (fault)
          if (auto reply = fault(request)) return reply;
        return at_hub(request);
      },
      [this, fault = std::move(at_second)](const SeenRequest& request) -> std::optional<ServerReply> {
        note("second", request);
        if (fault)
          if (auto reply = fault(request)) return reply;
        return at_second_host(request);
      });
}

void HubUploads::note(const std::string& host, const SeenRequest& request) {
  Json call = {{"host", host},
               {"method", request.method},
               {"path", host == "hub" ? request.path : request.path.substr(0, request.path.find('?'))},
               {"token", request.headers.contains("authorization")}};
  if (!request.body.empty())
    call.update({{"type", header_of(request, "content-type")}, {"body", body_of(request)}});
  const std::lock_guard lock(calls_mutex_);
  calls_.push_back(std::move(call));
}

Json HubUploads::calls() const {
  const std::lock_guard lock(calls_mutex_);
  return calls_;
}

int HubUploads::count(const std::string& words) const {
  int found = 0;
  for (const Json& call : calls()) {
    const std::string line = call.at("method").get<std::string>() + " " + call.at("path").get<std::string>();
    found += line.find(words) != std::string::npos;
  }
  return found;
}

std::optional<ServerReply> HubUploads::at_hub(const SeenRequest& request) {
  if (request.method != "POST") return std::nullopt;
  const std::string path = request.path.substr(0, request.path.find('?'));
  if (path.starts_with("/complete/")) {  // a signed address: no token
    const std::string oid = path.substr(10), upload = oid + request.path.substr(path.size());
    std::string whole;
    const Json body = body_of(request);
    for (const Json& part : body.at("parts")) {
      const std::string& bytes = parts_[upload][part.at("partNumber").get<int>()];
      if (part.at("etag") != "\"" + hex(sha256(bytes)) + "\"")
        return json_reply({{"error", "wrong etag"}}, 400);
      whole += bytes;
    }
    objects[oid] = whole;
    return json_reply(Json::object());
  }
  if (header_of(request, "authorization") != "Bearer " + token)
    return json_reply({{"error", "Invalid username or password."}}, 401);
  if (!may_write)
    return json_reply({{"error", "This token has the role read: a write token is needed."}}, 403);
  return answer_write(path, body_of(request));
}

ServerReply HubUploads::answer_write(const std::string& path, const Json& body) {
  if (path == "/api/repos/create") return create(body);
  if (path == "/api/validate-yaml")
    return json_reply({{"errors", Json::array()}, {"warnings", Json::array()}});
  if (path.ends_with(".git/info/lfs/objects/batch")) return batch(body);
  if (path.starts_with("/verify")) {
    const auto found = objects.find(body.at("oid"));
    const bool is_whole = found != objects.end() && found->second.size() == body.at("size").get<size_t>() &&
                          hex(sha256(found->second)) == found->first;
    return json_reply(Json::object(), is_whole ? 200 : 404);
  }
  for (const std::string call : {"/branch/", "/preupload/", "/commit/"}) {
    const size_t at = path.find(call);
    if (at == std::string::npos || !path.starts_with("/api/models/")) continue;
    const std::string repository = path.substr(5, at - 5), branch = plain(path.substr(at + call.size()));
    if (call == "/preupload/") return preupload(repository, body);
    if (call == "/commit/") return commit(repository, branch, body);
    ServedRepository& served = server_.add(repository);
    served.revisions[branch] = served.commit;
    return json_reply(Json::object());
  }
  return server_.unknown({.path = path, .method = "POST"});
}

ServerReply HubUploads::create(const Json& body) {
  const std::string id =
      body.at("organization").get<std::string>() + "/" + body.at("name").get<std::string>();
  Json answer = {{"url", server_.url() + "/" + id}};
  const bool is_there = server_.has("models/" + id);
  if (!may_create) return json_reply({{"error", "This token may not create repositories."}}, 403);
  if (is_there) answer["error"] = "You already created this model repo";
  if (!is_there) server_.add("models/" + id).is_private = body.value("visibility", "") == "private";
  return json_reply(answer, is_there ? 409 : 200);
}

ServerReply HubUploads::batch(const Json& body) {
  Json answers = Json::array();
  for (const Json& one : body.at("objects")) {
    const std::string oid = one.at("oid");
    const size_t size = one.at("size");
    Json answer = {{"oid", oid}, {"size", size}};
    if (!objects.contains(oid)) {
      const std::string place = server_.second_url() + "/objects/" + oid;
      Json upload = {{"href", place + "?Signature=sig"}};
      if (size > basic_bytes) {
        Json parts = {{"chunk_size", std::to_string(chunk_bytes)}};
        const int number = ++num_uploads_[oid];
        const std::string signature = number == 1 ? "sig" : fmt::format("sig{}", number);
        for (size_t i = 1; i <= (size + chunk_bytes - 1) / chunk_bytes; ++i)
          parts[fmt::format("{:05}", i)] = fmt::format("{}/{}?Signature={}", place, i, signature);
        upload = {{"href", server_.url() + "/complete/" + oid + "?Signature=" + signature},
                  {"header", parts}};
      }
      answer["actions"] = {{"upload", upload},
                           {"verify", {{"href", server_.url() + "/verify/tests/pushed"}}}};
    }
    answers.push_back(std::move(answer));
  }
  return json_reply({{"transfer", "multipart"}, {"objects", answers}});
}

ServerReply HubUploads::preupload(const std::string& repository, const Json& body) {
  Json answers = Json::array();
  const ServedRepository& served = server_.add(repository);
  for (const Json& one : body.at("files")) {
    const std::string path = one.at("path");
    Json answer = {
        {"path", path}, {"uploadMode", is_large(path) ? "lfs" : "regular"}, {"shouldIgnore", false}};
    if (const auto found = served.files.find(path); found != served.files.end())
      answer["oid"] = is_large(path) ? found->second.sha256 : found->second.git_sha1;
    answers.push_back(std::move(answer));
  }
  return json_reply({{"files", answers}});
}

ServerReply HubUploads::commit(const std::string& repository, const std::string& branch, const Json& lines) {
  ServedRepository& served = server_.add(repository);
  std::string& head = branch == "main" ? served.commit : served.revisions[branch];
  if (lines.at(0).at("value").value("parentCommit", head) != head)
    return json_reply({{"error", "A commit has happened since. Please refresh and try again."}}, 412);
  for (const Json& line : lines) {
    const Json& value = line.at("value");
    if (line.at("key") == "deletedFile") served.files.erase(value.at("path"));
    if (line.at("key") == "lfsFile")
      server_.add_file(repository, value.at("path"), objects.at(value.at("oid")), true);
    if (line.at("key") == "file")
      server_.add_file(repository, value.at("path"), from_base64(value.at("content")), false);
  }
  head = fmt::format("{:040x}", ++num_commits_);
  if (branch != "main") served.revisions[head] = head;
  return json_reply({{"commitUrl", server_.url() + "/commit/" + head}, {"commitOid", head}});
}

std::optional<ServerReply> HubUploads::at_second_host(const SeenRequest& request) {
  if (request.method != "PUT" || request.headers.contains("authorization")) return std::nullopt;
  const std::string path = request.path.substr(0, request.path.find('?'));
  const std::string place = path.substr(std::string("/objects/").size());
  const size_t slash = place.find('/');
  if (slash == std::string::npos)
    objects[place] = request.body;
  else
    parts_[place.substr(0, slash) + request.path.substr(path.size())][std::atoi(place.c_str() + slash + 1)] =
        request.body;
  return ServerReply{
      .status = 200, .headers = {"ETag: \"" + hex(sha256(request.body)) + "\""}, .is_whole = true};
}

}  // namespace tycho::testing
