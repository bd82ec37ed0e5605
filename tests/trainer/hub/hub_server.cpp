// Answers as the hub does, as far as downloads need it.
#include "tests/trainer/hub/hub_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "trainer/base/json.h"
#include "trainer/hub/hub_hash.h"

namespace tycho::testing {
namespace {

std::string decoded(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    plain +=
        text[i] == '%' ? static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16)) : text[i];
    if (text[i] == '%') i += 2;
  }
  return plain;
}

std::string hash_of(const std::string& bytes, bool is_large) {
  HubFile file;
  file.num_bytes = static_cast<int64_t>(bytes.size());
  if (is_large) file.sha256 = "large";
  HubHasher hasher(file);
  hasher.update(bytes.data(), bytes.size());
  return hasher.hex();
}

ServerReply refusal(int status, const std::string& code) {
  return {status, "{\"error\":\"" + code + "\"}", {"X-Error-Code: " + code}};
}

/// The bytes that the Range header asks for.
ServerReply cut(const std::string& bytes, const SeenRequest& request, std::vector<std::string> headers) {
  const auto range = request.headers.find("range");
  ServerReply reply{200, bytes, std::move(headers)};
  if (range == request.headers.end()) return reply;
  const size_t begin = std::strtoull(range->second.c_str() + 6, nullptr, 10);
  const size_t last = std::strtoull(range->second.c_str() + range->second.find('-') + 1, nullptr, 10);
  reply.status = 206;
  reply.body = bytes.substr(begin, last + 1 - begin);
  reply.headers.push_back(
      fmt::format("Content-Range: bytes {}-{}/{}", begin, begin + reply.body.size() - 1, bytes.size()));
  return reply;
}

std::string authorization(const SeenRequest& request) {
  const auto found = request.headers.find("authorization");
  return found == request.headers.end() ? "" : found->second;
}

Json folder_entry(const std::string& path) {
  return {{"type", "directory"}, {"oid", std::string(40, 'd')}, {"size", 0}, {"path", path}};
}

Json entry_of(const std::string& path, const ServedFile& file) {
  const int64_t size = file.shown_bytes >= 0 ? file.shown_bytes : static_cast<int64_t>(file.bytes.size());
  Json entry = {{"type", "file"}, {"oid", file.git_sha1}, {"size", size}, {"path", path}};
  if (file.is_large) entry["lfs"] = {{"oid", file.sha256}, {"size", size}, {"pointerSize", 130}};
  if (!file.xet_hash.empty()) entry["xetHash"] = file.xet_hash;
  return entry;
}

}  // namespace

HubServer::HubServer() : second_("/nowhere"), hub_("/nowhere") {
  hub_.set_fault([this](const SeenRequest& request) -> std::optional<ServerReply> {
    const std::lock_guard lock(mutex_);
    if (hub_fault_)
      if (auto reply = hub_fault_(request)) return reply;
    return at_hub(request);
  });
  second_.set_fault([this](const SeenRequest& request) -> std::optional<ServerReply> {
    const std::lock_guard lock(mutex_);
    if (second_fault_)
      if (auto reply = second_fault_(request)) return reply;
    return at_second_host(request);
  });
}

void HubServer::add_file(const std::string& repository, const std::string& path, const std::string& bytes,
                         bool is_large) {
  ServedFile file{bytes, is_large, "", "", "", -1};
  if (is_large) file.sha256 = hash_of(bytes, true);
  file.git_sha1 = hash_of(is_large ? "pointer to " + file.sha256 : bytes, false);
  repositories_[repository].files[path] = file;
}

void HubServer::set_faults(Fault at_hub, Fault at_second_host) {
  const std::lock_guard lock(mutex_);
  hub_fault_ = std::move(at_hub), second_fault_ = std::move(at_second_host);
}

std::vector<std::string> HubServer::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

std::vector<std::string> HubServer::requests() const {
  std::vector<std::string> lines;
  for (const auto& [name, server] : {std::pair{"hub", &hub_}, std::pair{"second", &second_}})
    for (const SeenRequest& request : server->requests())
      lines.push_back(fmt::format(
          "{} {} {}{}", name, request.method,
          name == std::string("hub") ? request.path : request.path.substr(0, request.path.find('?')),
          authorization(request).empty() ? "" : " token"));
  return lines;
}

ServerReply HubServer::unknown(const SeenRequest& request) {
  problems_.push_back("unknown call: " + request.method + " " + request.path);
  return {501, "unknown call"};
}

ServerReply HubServer::at_hub(const SeenRequest& request) {
  std::string path = request.path;
  const bool is_api = path.starts_with("/api/");
  if (request.method != "GET" && request.method != "HEAD") return unknown(request);
  if (!token.empty() && authorization(request) != "Bearer " + token) return refusal(401, "RepoNotFound");
  path = is_api ? path.substr(5) : (path.starts_with("/datasets/") ? path.substr(1) : "models" + path);
  if (is_api && std::count(path.begin(), path.end(), '/') == 2) path += "/revision/main";
  for (const char* call : {"/revision/", "/tree/", "/resolve/"}) {
    const size_t at = path.find(call);
    if (at == std::string::npos || is_api == (call == std::string("/resolve/"))) continue;
    const std::string name = path.substr(0, at), rest = path.substr(at + std::string(call).size());
    if (const auto move = moved.find(name); move != moved.end()) {
      const bool is_model = move->second.starts_with("models/") && !is_api;
      const std::string to = is_model ? move->second.substr(6) : (is_api ? "/api/" : "/") + move->second;
      return {307, "moved", {"Location: " + to + call + rest}};
    }
    const auto found = repositories_.find(name);
    if (found == repositories_.end()) return refusal(token.empty() ? 401 : 404, "RepoNotFound");
    const std::string revision = decoded(rest.substr(0, rest.find_first_of("/?")));
    const ServedRepository& repository = found->second;
    const auto named = repository.revisions.find(revision);
    const std::string commit = named != repository.revisions.end() ? named->second : repository.commit;
    if (named == repository.revisions.end() && revision != "main" && revision != repository.commit)
      return refusal(404, "RevisionNotFound");
    if (call == std::string("/revision/")) return describe(name, repository, commit);
    return call == std::string("/tree/") ? list(repository, path, rest) : resolve(name, rest, request);
  }
  return unknown(request);
}

ServerReply HubServer::describe(const std::string& name, const ServedRepository& repository,
                                const std::string& commit) {
  Json siblings = Json::array();
  for (const auto& [path, file] : repository.files) siblings.push_back({{"rfilename", path}});
  return {200, Json{{"id", name.substr(name.find('/') + 1)},
                    {"sha", commit},
                    {"siblings", std::move(siblings)},
                    {"private", repository.is_private}}
                   .dump()};
}

ServerReply HubServer::list(const ServedRepository& repository, const std::string& path,
                            const std::string& rest) {
  const size_t cursor = path.find("&cursor="), query = std::min(rest.find('?'), rest.size());
  const size_t begin =
      cursor == std::string::npos ? 0 : std::strtoull(path.c_str() + cursor + 8, nullptr, 10);
  const size_t slash = rest.substr(0, query).find('/');
  const std::string folder =
      slash == std::string::npos ? "" : decoded(rest.substr(slash + 1, query - slash - 1)) + "/";
  const bool is_recursive = rest.find("recursive=true", query) != std::string::npos ||
                            rest.find("recursive=True", query) != std::string::npos;
  std::vector<Json> entries;
  std::set<std::string> folders;
  for (const auto& [name, file] : repository.files) {
    if (!name.starts_with(folder)) continue;
    for (size_t at = name.find('/', folder.size()); at != std::string::npos; at = name.find('/', at + 1))
      if ((is_recursive || name.find('/', folder.size()) == at) && folders.insert(name.substr(0, at)).second)
        entries.push_back(folder_entry(name.substr(0, at)));
    if (is_recursive || name.find('/', folder.size()) == std::string::npos)
      entries.push_back(entry_of(name, file));
  }
  if (entries.empty() && !folder.empty()) return refusal(404, "EntryNotFound");
  const size_t end = std::min(begin + page_entries, entries.size());
  Json page = Json::array();
  for (size_t i = begin; i < end; ++i) page.push_back(entries[i]);
  ServerReply reply{200, page.dump()};
  if (end < entries.size())
    reply.headers.push_back(
        fmt::format("Link: <{}/api/{}&cursor={}>; rel=\"next\"", hub_.url(), path.substr(0, cursor), end));
  return reply;
}

ServerReply HubServer::resolve(const std::string& name, const std::string& rest, const SeenRequest& request) {
  const ServedRepository& repository = repositories_.at(name);
  const std::string path = decoded(rest.substr(rest.find('/') + 1));
  const auto found = repository.files.find(path);
  if (found == repository.files.end()) return refusal(404, "EntryNotFound");
  const ServedFile& file = found->second;
  std::vector<std::string> headers = {"X-Repo-Commit: " + repository.commit};
  if (!file.is_large) {
    headers.push_back("ETag: \"" + file.git_sha1 + "\"");
    return cut(file.bytes, request, headers);
  }
  headers.push_back("X-Linked-Etag: \"" + file.sha256 + "\"");
  headers.push_back(fmt::format("X-Linked-Size: {}", file.bytes.size()));
  headers.push_back("ETag: \"" + file.git_sha1 + "\"");
  if (!file.xet_hash.empty()) {
    headers.push_back("X-Xet-Hash: " + file.xet_hash);
    headers.push_back(fmt::format("Link: <{}/api/{}/xet-read-token/{}>; rel=\"xet-auth\"", hub_.url(), name,
                                  repository.commit));
  }
  headers.push_back(
      fmt::format("Location: {}/{}/{}?Signature=sig{:06}", second_.url(), name, path, ++num_signed_));
  return {302, "Found", headers};
}

ServerReply HubServer::at_second_host(const SeenRequest& request) {
  if (!authorization(request).empty()) {
    problems_.push_back("a token at the second host");
    return {400, "no token here"};
  }
  const std::string path = request.path.substr(1, request.path.find('?') - 1);
  for (const auto& [name, repository] : repositories_)
    for (const auto& [file_path, file] : repository.files)
      if (file.is_large && path == name + "/" + file_path) {
        if (++uses_[request.path] > uses_of_address) return {403, "expired"};
        return cut(file.bytes, request, {"ETag: \"of-the-store\""});
      }
  return unknown(request);
}

}  // namespace tycho::testing
