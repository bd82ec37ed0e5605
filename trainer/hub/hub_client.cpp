// The calls of huggingface_hub 2.4 for downloads, with its addresses.
#include "trainer/hub/hub_client.h"

#include <algorithm>
#include <cstdlib>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/http/answer_line.h"
#include "trainer/http/retry_wait.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

constexpr int kMostRedirects = 5;
constexpr size_t kMostAnswerBytes = size_t{64} << 20;
constexpr double kLongestWait_s = 30;
constexpr double kLongestAskedWait_s = 600;

/// Returns scheme, host and port: "https://huggingface.co".
std::string origin_of(const std::string& url) {
  const size_t begin = url.find("://");
  return begin == std::string::npos ? "" : url.substr(0, url.find_first_of("/?#", begin + 3));
}

std::string unquoted(std::string tag) {
  if (tag.starts_with("W/")) tag.erase(0, 2);
  std::erase(tag, '"');
  return tag;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Returns the hub's own words about a refusal, in one line.
std::string said(const HttpAnswer& answer) {
  std::string text = answer.header("x-error-message");
  if (text.empty()) {
    const Json body = Json::parse(answer.body, nullptr, false);
    if (body.is_object() && body.value("error", Json()).is_string())
      text = body.at("error").get<std::string>();
  }
  return text.empty() ? "" : " (" + answer_line(text) + ")";
}

/// Fails with what a refused write means.
void refuse_write(const HttpAnswer& answer, const HubName& about, const HubSettings& settings) {
  const std::string page = settings.endpoint + "/settings/tokens";
  if (answer.status == 401)
    fail(ExitCode::kUnusable,
         "[hub] {} may not be written: the hub does not know the token{}; make one that may write at {} and "
         "set HF_TOKEN",
         about.text(), said(answer), page);
  if (answer.status == 402 || answer.status == 403)
    fail(
        ExitCode::kUnusable,
        "[hub] {} may not be written: the token may only read it, or its owner has not let you write{}; make "
        "one that may write at {} and set HF_TOKEN, or ask the owner",
        about.text(), said(answer), page);
}

/// Returns the address of the next page of a Link header; "" on the last.
std::string next_page(const HttpAnswer& answer) {
  const std::string links = answer.header("link");
  const size_t rel = links.find("rel=\"next\"");
  if (rel == std::string::npos) return "";
  const size_t end = links.rfind('>', rel), begin = links.rfind('<', end);
  return begin == std::string::npos || end == std::string::npos ? ""
                                                                : links.substr(begin + 1, end - begin - 1);
}

HubFile file_of(const Json& entry) {
  HubFile file;
  file.path = entry.at("path").get<std::string>();
  file.git_sha1 = entry.at("oid").get<std::string>();
  file.num_bytes = entry.at("size").get<int64_t>();
  if (entry.contains("lfs") && entry.at("lfs").is_object()) {
    file.sha256 = entry.at("lfs").at("oid").get<std::string>();
    file.num_bytes = entry.at("lfs").at("size").get<int64_t>();
  }
  if (entry.contains("xetHash") && entry.at("xetHash").is_string()) file.xet_hash = entry.at("xetHash");
  return file;
}

/// True if a path from a server stays inside the repository's folder, and its hashes are hashes.
bool is_sound(const HubFile& file) {
  const auto is_hex = [](const std::string& text, size_t size) {
    return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string::npos;
  };
  const HubName probe{HubName::Kind::kModel, "a/b", "main", file.path};
  return !file.path.empty() && hub_name_problem(probe.text()).empty() && is_hex(file.git_sha1, 40) &&
         (file.sha256.empty() || is_hex(file.sha256, 64)) && file.num_bytes >= 0;
}

}  // namespace

std::string revision_in_url(const std::string& revision) {
  std::string text = percent_encoded(revision.empty() ? "main" : revision);
  for (size_t i = text.find('/'); i != std::string::npos; i = text.find('/', i)) text.replace(i, 1, "%2F");
  return text;
}

Json json_of(const HttpAnswer& answer, const HubName& about, const HubSettings& settings) {
  Json json = Json::parse(answer.body, nullptr, false);
  if (json.is_discarded())
    fail(ExitCode::kUnusable, "[hub] {}: expected JSON from {}, got something else: is HF_ENDPOINT a hub?",
         about.text(), settings.endpoint);
  return json;
}

std::string absolute_url(const std::string& location, const std::string& base) {
  if (location.find("://") != std::string::npos) return location;
  if (location.starts_with("//")) return base.substr(0, base.find("//")) + location;
  if (location.starts_with('/')) return origin_of(base) + location;
  return base.substr(0, base.find_first_of("?#")).substr(0, base.rfind('/') + 1) + location;
}

double hub_wait_s(const HttpAnswer& answer) {
  const std::string limit = answer.header("ratelimit");  // "api";r=0;t=55
  const size_t rest = limit.find(";r="), time = limit.find(";t=");
  if (answer.status == 429 && rest != std::string::npos && time != std::string::npos &&
      std::strtol(limit.c_str() + rest + 3, nullptr, 10) == 0)
    return std::max(0.0, std::strtod(limit.c_str() + time + 3, nullptr));
  return answer.wait_s;
}

HubClient::HubClient(HubSettings settings, std::stop_token stop, HubPolicy policy)
    : origin_(origin_of(settings.endpoint)),
      settings_(std::move(settings)),
      stop_(std::move(stop)),
      policy_(policy) {}

bool HubClient::is_hub(const std::string& url) const { return origin_of(url) == origin_; }

std::string HubClient::api(const HubName& name, const std::string& rest) const {
  return fmt::format("{}/api/{}/{}/{}", settings_.endpoint,
                     name.kind == HubName::Kind::kDataset ? "datasets" : "models", name.id, rest);
}

HttpAnswer HubClient::exchange(HttpCall call, bool with_token, const std::string& what) const {
  call.timeout_s = 0;
  if (call.stall_s <= 0) call.stall_s = policy_.stall_s;
  if (with_token && !settings_.token.empty())
    call.headers.push_back("Authorization: Bearer " + settings_.token);
  double wait_s = policy_.first_wait_s;
  for (int left = policy_.retries;; --left) {
    HttpAnswer answer = http_exchange(call, stop_);
    if (stop_.stop_requested()) fail(ExitCode::kTerminated, "[hub] stopped while {} was asked for", what);
    if (answer.is_untrusted)
      fail(ExitCode::kUnusable, "[hub] {}: expected an answer from {}, got none: {}", what,
           with_token ? settings_.endpoint : "the host that it points to", answer.problem);
    if (!answer.may_pass()) return answer;
    const double asked_s = std::min(hub_wait_s(answer), kLongestAskedWait_s);
    if (left <= 0) {
      const std::string got = answer.status == 0 ? "no answer: " + answer.problem
                                                 : fmt::format("status {}{}", answer.status, said(answer));
      const std::string advice = answer.status == 429
                                     ? "the hub limits requests: set HF_TOKEN, or start again later"
                                     : "start again when it answers; files that are cached need no request";
      fail(ExitCode::kStorage, "[hub] {}: expected an answer from {}, got {} ({} tries); {}", what,
           with_token ? settings_.endpoint : "the host that it points to", got, policy_.retries + 1, advice);
    }
    if (!wait_to_retry(std::max(with_jitter(wait_s), asked_s), stop_))
      fail(ExitCode::kTerminated, "[hub] stopped while {} was asked for", what);
    wait_s = std::min(2 * wait_s, kLongestWait_s);
  }
}

void HubClient::refuse(const HttpAnswer& answer, const HubName& about, HubUse use) const {
  if (use == HubUse::kWrite) refuse_write(answer, about, settings_);
  const std::string code = answer.header("x-error-code"), shown = about.text(), words = said(answer);
  const std::string page =
      settings_.endpoint + "/" + (about.kind == HubName::Kind::kDataset ? "datasets/" : "") + about.id;
  const auto refused = [&](const std::string& why) {
    fail(ExitCode::kUnusable, "[hub] {} {}{}", shown, why, words);
  };
  const char* log_in =
      settings_.token.empty()
          ? "set HF_TOKEN to a token that may read it, or run `hf auth login`"
          : "the token (HF_TOKEN, or the file of `hf auth login`) may not read it, or is not valid";
  if (code == "DisabledRepo" || answer.header("x-error-message") == "Access to this resource is disabled.")
    refused("has been disabled by the hub");
  if (code == "GatedRepo")
    refused(fmt::format("may be read only after its owner's terms are accepted: accept them at {}; then {}",
                        page, log_in));
  if (answer.status == 403) refused(fmt::format("may not be read: {}", log_in));
  if (code == "RevisionNotFound")
    refused(
        fmt::format("does not exist: the repository has no revision \"{}\"; {}/tree/main lists the branches",
                    about.revision.empty() ? "main" : about.revision, page));
  if (code == "EntryNotFound")
    refused(fmt::format("does not exist: the repository has no such file; {}/tree/{} lists them", page,
                        about.revision.empty() ? "main" : about.revision));
  if (answer.status == 401 || code == "RepoNotFound" || answer.status == 404)
    refused(fmt::format("does not exist, or is private: check the name{}; {}",
                        about.kind == HubName::Kind::kModel ? " (data sets begin with hf://datasets/)" : "",
                        log_in));
  fail(ExitCode::kUnusable, "[hub] {}: expected an answer, got status {} from {}{}", shown, answer.status,
       settings_.endpoint, words);
}

HttpAnswer HubClient::send(HttpCall call, const HubName& about, HubUse use) const {
  HttpAnswer answer = ask(std::move(call), about, use);
  if (answer.status / 100 != 2) refuse(answer, about, use);
  return answer;
}

HttpAnswer HubClient::ask(HttpCall call, const HubName& about, HubUse use) const {
  if (call.url.starts_with('/')) call.url = settings_.endpoint + call.url;
  call.most_body_bytes = kMostAnswerBytes;
  for (int i = 0; i <= kMostRedirects; ++i) {
    HttpAnswer answer = exchange(call, is_hub(call.url), about.text());
    if (!is_redirect(answer.status) || answer.header("location").empty()) return answer;
    call.url = absolute_url(answer.header("location"), call.url);
    if (use == HubUse::kWrite && !is_hub(call.url))
      fail(ExitCode::kUnusable, "[hub] {}: the hub redirects to another host, which gets nothing from here",
           about.text());
  }
  fail(ExitCode::kUnusable, "[hub] {}: the hub redirects more than {} times", about.text(), kMostRedirects);
}

std::string HubClient::find_commit(const HubName& name) const {
  return find_commit(ask({.url = api(name, "revision/" + revision_in_url(name.revision))}, name), name);
}

std::string HubClient::find_commit(const HttpAnswer& answer, const HubName& name) const {
  if (answer.status / 100 != 2) refuse(answer, name);
  const Json info = json_of(answer, name, settings_);
  const std::string commit = info.is_object() && info.value("sha", Json()).is_string() ? info.at("sha") : "";
  if (!is_commit(commit))
    fail(ExitCode::kUnusable, "[hub] {}: expected a commit from {}, got none: is HF_ENDPOINT a hub?",
         name.text(), settings_.endpoint);
  return commit;
}

std::vector<HubFile> HubClient::list(const HubName& at_commit) const {
  std::vector<HubFile> files;
  std::string url =
      api(at_commit, "tree/" + revision_in_url(at_commit.revision)) + "?recursive=true&expand=false";
  while (!url.empty()) {
    const HttpAnswer answer = send({.url = url}, at_commit);
    try {
      for (const Json& entry : json_of(answer, at_commit, settings_)) {
        if (entry.at("type") != "file") continue;
        files.push_back(file_of(entry));
        if (!is_sound(files.back()))
          fail(ExitCode::kUnusable, "[hub] {}: the listing has a file that cannot be: \"{}\"",
               at_commit.text(), without_secrets(files.back().path));
      }
    } catch (const Json::exception&) {
      fail(ExitCode::kUnusable, "[hub] {}: expected a list of files from {}, got something else",
           at_commit.text(), settings_.endpoint);
    }
    const std::string next = next_page(answer);
    url = next.empty() ? "" : absolute_url(next, url);
    if (!url.empty() && !is_hub(url))
      fail(ExitCode::kUnusable, "[hub] {}: the listing goes on at another host", at_commit.text());
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

HubAddress HubClient::locate(const HubName& file) const {
  HubAddress address;
  address.url = fmt::format("{}/{}{}/resolve/{}/{}", settings_.endpoint,
                            file.kind == HubName::Kind::kDataset ? "datasets/" : "", file.id,
                            revision_in_url(file.revision), percent_encoded(file.path));
  for (int i = 0; i <= kMostRedirects; ++i) {
    HttpCall call{.method = "HEAD", .url = address.url, .headers = {"Accept-Encoding: identity"}};
    const HttpAnswer answer = exchange(call, true, file.text());
    const bool moved = is_redirect(answer.status) && !answer.header("location").empty();
    if (!moved && answer.status / 100 != 2) refuse(answer, file);
    // The redirect itself has the hash and the size; what it leads to may not.
    if (address.commit.empty()) address.commit = answer.header("x-repo-commit");
    if (address.hash.empty()) address.hash = unquoted(answer.header("x-linked-etag"));
    const std::string size =
        answer.header(answer.header("x-linked-size").empty() && !moved ? "content-length" : "x-linked-size");
    if (address.num_bytes < 0 && !size.empty()) address.num_bytes = std::strtoll(size.c_str(), nullptr, 10);
    if (!moved) {
      if (address.hash.empty()) address.hash = unquoted(answer.header("etag"));
      return address;
    }
    address.url = absolute_url(answer.header("location"), address.url);
    address.is_hub = is_hub(address.url);
    if (!address.is_hub) return address;
  }
  fail(ExitCode::kUnusable, "[hub] {}: the hub redirects more than {} times", file.text(), kMostRedirects);
}

HttpAnswer HubClient::read(const HubAddress& address, int64_t begin, int64_t end,
                           const std::string& what) const {
  HttpCall call{.url = address.url, .headers = {"Accept-Encoding: identity"}};
  call.headers.push_back(fmt::format("Range: bytes={}-{}", begin, end - 1));
  call.most_body_bytes = static_cast<size_t>(std::max(end - begin, int64_t{1} << 16));
  bool with_token = address.is_hub;
  for (int i = 0; i <= kMostRedirects; ++i) {
    HttpAnswer answer = exchange(call, with_token, what);
    if (!is_redirect(answer.status) || answer.header("location").empty()) return answer;
    call.url = absolute_url(answer.header("location"), call.url);
    with_token = with_token && is_hub(call.url);
  }
  fail(ExitCode::kUnusable, "[hub] {}: the hub redirects more than {} times", what, kMostRedirects);
}

}  // namespace tycho
