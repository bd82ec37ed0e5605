// The calls of huggingface_hub 2.4 for uploads, in its order.
#include "trainer/hub/hub_push.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "trainer/base/error.h"
#include "trainer/base/in_parallel.h"
#include "trainer/base/regular_file.h"
#include "trainer/base/text/base64.h"
#include "trainer/http/answer_line.h"
#include "trainer/http/retry_wait.h"
#include "trainer/hub/hub_hash.h"
#include "trainer/hub/hub_upload.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostFileBytes = int64_t{50} * 1000 * 1000 * 1000;  // of git LFS on the hub
constexpr int64_t kMostTextBytes = 4 << 20;
constexpr int64_t kSampleBytes = 512;
constexpr int kMostWaits = 20;            // for another repository of the same owner that is being created
constexpr double kLongestAnswer_s = 600;  // the hub checks all files of a commit before it answers
constexpr const char* kCard = "README.md";

HttpCall json_call(const std::string& url, const Json& body) {
  return {.method = "POST", .url = url, .headers = {"Content-Type: application/json"}, .body = body.dump()};
}

/// Returns all regular files of a folder, by path. Hidden ones are no part of a model.
std::vector<HubUpload> files_of(const std::string& folder) {
  std::vector<HubUpload> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = fs::relative(entry.path(), folder).string();
    if (!entry.is_regular_file() || path.starts_with('.') || path.find("/.") != std::string::npos) continue;
    HubUpload file;
    file.path = path, file.file = entry.path().string();
    file.num_bytes = static_cast<int64_t>(entry.file_size());
    if (file.num_bytes > kMostFileBytes)
      fail(ExitCode::kUnusable,
           "[hub] expected files of at most 50 GB, which the hub accepts, got {}: export with --shard-size "
           "5GB",
           file.file);
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

/// Returns the commit of the branch, which is created if it does not exist; "" for a repository without any.
std::string commit_of_branch(const HubClient& client, const HubName& to) {
  const HttpCall call{.url = client.api(to, "revision/" + revision_in_url(to.revision))};
  const HttpAnswer answer = client.ask(call, to);
  const bool is_absent = answer.status == 404 && answer.header("x-error-code") == "RevisionNotFound";
  if (!is_absent) return client.find_commit(answer, to);
  if (to.revision.empty() || to.revision == "main") return "";
  const HttpAnswer created =
      client.ask(json_call(client.api(to, "branch/" + revision_in_url(to.revision)), Json::object()), to,
                 HubUse::kWrite);
  if (created.status / 100 != 2 && created.status != 409) client.refuse(created, to, HubUse::kWrite);
  return client.find_commit(to);
}

std::string hash_of(const HubUpload& file, bool is_large) {
  HubFile kind;
  kind.num_bytes = file.num_bytes;
  if (is_large) kind.sha256 = "large";
  return hub_hash_of(file.file, kind);
}

/// Leaves README.md out if the repository's own text is there. Returns true if it does.
bool leave_foreign_card(const HubClient& client, const HubSnapshot& there, const HubPush& push,
                        std::vector<HubUpload>& files) {
  const HubFile* theirs = there.find(kCard);
  const auto ours = std::find_if(files.begin(), files.end(), [](const auto& f) { return f.path == kCard; });
  if (theirs == nullptr || ours == files.end() || theirs->hash() == hash_of(*ours, false)) return false;
  if (theirs->num_bytes > 0 && theirs->num_bytes <= kMostTextBytes) {
    const HubName name = there.repository.below(kCard);
    const HttpAnswer answer = client.read(client.locate(name), 0, theirs->num_bytes, name.text());
    if (answer.status / 100 != 2) client.refuse(answer, name);
    if (push.is_own_card(answer.body)) return false;
  }
  files.erase(ours);
  return true;
}

/// Asks the hub whether it reads the head of README.md, before the large files are sent.
void check_card(const HubClient& client, const HubName& to, const std::vector<HubUpload>& files) {
  const auto card = std::find_if(files.begin(), files.end(), [](const auto& f) { return f.path == kCard; });
  if (card == files.end()) return;
  const Json body = {{"content", read_file_up_to(card->file, kMostTextBytes)}, {"repoType", "model"}};
  const HttpAnswer answer =
      client.ask(json_call(client.settings().endpoint + "/api/validate-yaml", body), to, HubUse::kWrite);
  if (answer.status / 100 == 2) return;
  if (answer.status != 400) client.refuse(answer, to, HubUse::kWrite);
  std::string words;
  const Json said = Json::parse(answer.body, nullptr, false);
  for (const Json& one : said.is_object() ? said.value("errors", Json::array()) : Json::array())
    words += (words.empty() ? "" : "; ") + one.value("message", "");
  fail(ExitCode::kUnusable, "[hub] expected a README.md that the hub reads, got {}: {}", card->file,
       answer_line(words));
}

/// Asks how each file is sent, and computes its hash. Leaves out those that the repository's .gitignore
/// names.
void choose_modes(const HubClient& client, const HubName& to, std::vector<HubUpload>& files) {
  std::vector<std::string> ignored;
  for (size_t begin = 0; begin < files.size(); begin += kHubBatchFiles) {
    const size_t end = std::min(begin + kHubBatchFiles, files.size());
    Json asked = Json::array();
    for (size_t i = begin; i < end; ++i) {
      std::string sample(static_cast<size_t>(std::min(files[i].num_bytes, kSampleBytes)), '\0');
      read_exactly(files[i].file, 0, sample.data(), sample.size());
      asked.push_back({{"path", files[i].path}, {"sample", base64(sample)}, {"size", files[i].num_bytes}});
    }
    const HttpAnswer answer = client.send(
        json_call(client.api(to, "preupload/" + revision_in_url(to.revision)), {{"files", asked}}), to,
        HubUse::kWrite);
    std::map<std::string, Json> modes;
    const Json answers = json_of(answer, to, client.settings());
    for (const Json& one : answers.at("files")) modes[one.at("path")] = one;
    for (size_t i = begin; i < end; ++i) {
      const Json& mode = modes[files[i].path];
      // The store of large files refuses empty ones.
      files[i].is_large = mode.at("uploadMode") == "lfs" && files[i].num_bytes > 0;
      if (mode.value("shouldIgnore", false)) ignored.push_back(files[i].path);
    }
  }
  std::erase_if(files, [&](const HubUpload& file) {
    return std::find(ignored.begin(), ignored.end(), file.path) != ignored.end();
  });
  in_parallel(files.size(), kHubUploadThreads,
              [&](size_t i) { files[i].hash = hash_of(files[i], files[i].is_large); });
}

bool is_there(const HubSnapshot& there, const HubUpload& file) {
  const HubFile* found = there.find(file.path);
  return found != nullptr && found->hash() == file.hash;
}

/// Returns the lines of a commit.
std::string commit_text(const HubPush& push, const std::string& parent, const std::vector<HubUpload>& changed,
                        const std::vector<std::string>& deleted) {
  Json head = {{"summary", push.summary}, {"description", ""}};
  if (!parent.empty()) head["parentCommit"] = parent;
  std::string text = Json{{"key", "header"}, {"value", head}}.dump() + "\n";
  for (const std::string& path : deleted)
    text += Json{{"key", "deletedFile"}, {"value", {{"path", path}}}}.dump() + "\n";
  for (const HubUpload& file : changed) {
    Json value = {{"path", file.path}, {"algo", "sha256"}, {"oid", file.hash}, {"size", file.num_bytes}};
    if (!file.is_large)
      value = {{"path", file.path},
               {"encoding", "base64"},
               {"content", base64(read_file_up_to(file.file, file.num_bytes + 1))}};
    text += Json{{"key", file.is_large ? "lfsFile" : "file"}, {"value", value}}.dump() + "\n";
  }
  return text;
}

/// Fails because the branch is not what this push began with, unless it already is what the push wants: the
/// answer to a commit can be lost, and the commit is then asked for once more.
std::string commit_that_was_made(const HubClient& client, const HubPush& push, const std::string& parent,
                                 const std::vector<HubUpload>& changed,
                                 const std::vector<std::string>& deleted) {
  HubSnapshot now;
  now.repository = push.to.at(client.find_commit(push.to));
  now.files = client.list(now.repository);
  const bool is_made =
      std::all_of(changed.begin(), changed.end(), [&](const auto& file) { return is_there(now, file); }) &&
      std::none_of(deleted.begin(), deleted.end(), [&](const auto& path) { return now.find(path); });
  if (!is_made)
    fail(ExitCode::kUnusable,
         "[hub] {} has moved from {} to {} while this push ran: nothing was committed and nothing is lost; "
         "type the same command again, files that arrived are not sent again",
         push.to.text(), parent.empty() ? "no commit" : parent, now.commit());
  return now.commit();
}

/// Returns true if the repository exists and can be read. Fails if it is public and must not be.
bool can_read(const HubClient& client, HubName to, bool is_private) {
  to.revision.clear();
  const HttpAnswer answer = client.ask({.url = client.api(to, "revision/main")}, to);
  if (answer.status / 100 != 2) return false;
  if (is_private && !json_of(answer, to, client.settings()).value("private", false))
    fail(ExitCode::kUnusable,
         "[hub] --private: {} is public: change it at {}/{}/settings, or leave --private out", to.text(),
         client.settings().endpoint, to.id);
  return true;
}

/// Fails if the token may not write: asks how a file would be sent, which only those who may write may ask.
void check_write(const HubClient& client, const HubName& to) {
  const Json files = Json::array({{{"path", kCard}, {"sample", ""}, {"size", 0}}});
  client.send(json_call(client.api(to, "preupload/main"), {{"files", files}}), to, HubUse::kWrite);
}

}  // namespace

HubName parse_push_name(const std::string& text) {
  const HubName name = parse_hub_name(text);
  const auto refused = [&](const char* why) {
    fail(ExitCode::kUnusable, "[hub] --push expected hf://OWNER/NAME, or hf://OWNER/NAME@BRANCH, got {}: {}",
         text, why);
  };
  if (name.kind != HubName::Kind::kModel) refused("a model is no data set");
  if (!name.path.empty()) refused("a model is at the top of its repository; leave the path out");
  if (name.id.find('/') == std::string::npos) refused("name the owner, which is you or an organization");
  if (is_commit(name.revision)) refused("a commit cannot be written; name a branch");
  return name;
}

void create_repository(const HubClient& client, const HubName& to, bool is_private) {
  if (client.settings().is_offline)
    fail(ExitCode::kUnusable, "[hub] cannot push to {}: HF_HUB_OFFLINE is set; unset it", to.text());
  if (client.settings().token.empty())
    fail(ExitCode::kUnusable,
         "[hub] pushing to {} expected a token that may write, got none: set HF_TOKEN, or run `hf auth "
         "login`; "
         "{}/settings/tokens makes one",
         to.text(), client.settings().endpoint);
  const size_t slash = to.id.find('/');
  Json body = {{"name", to.id.substr(slash + 1)}, {"organization", to.id.substr(0, slash)}};
  if (is_private) body["visibility"] = "private";
  for (int waits = 0;; ++waits) {
    const HttpAnswer answer =
        client.ask(json_call(client.settings().endpoint + "/api/repos/create", body), to, HubUse::kWrite);
    const bool is_busy =
        answer.status == 409 && answer.body.find("another conflicting operation") != std::string::npos;
    if (is_busy && waits < kMostWaits && wait_to_retry(1, client.stop())) continue;
    const bool exists = answer.status / 100 == 2 || (answer.status == 409 && !is_busy);
    if (exists && !is_private) return;
    // A token without the right to create repositories may still write to one that exists.
    const bool may_exist = exists || (answer.status >= 401 && answer.status <= 403);
    if (!may_exist || !can_read(client, to, is_private)) client.refuse(answer, to, HubUse::kWrite);
    if (!exists) check_write(client, to);
    return;
  }
}

HubPushReport push_folder(const HubClient& client, const HubPush& push) try {
  HubPushReport report;
  HubSnapshot there;
  const std::string parent = commit_of_branch(client, push.to);
  there.repository = push.to.at(parent);
  if (!parent.empty()) there.files = client.list(there.repository);
  std::vector<HubUpload> files = files_of(push.folder);
  report.keeps_card = leave_foreign_card(client, there, push, files);
  check_card(client, push.to, files);
  choose_modes(client, push.to, files);
  report.sent_bytes = send_large_files(client, push.to, files);
  for (const HubFile& old : there.files) {
    const bool is_kept =
        std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.path == old.path; });
    if (!is_kept && push.is_stale(old.path)) report.deleted.push_back(old.path);
  }
  report.num_kept = std::erase_if(files, [&](const HubUpload& file) { return is_there(there, file); });
  for (const HubUpload& file : files) report.written.push_back(file.path);
  report.commit = parent;
  report.is_changed = !files.empty() || !report.deleted.empty();
  if (report.is_changed) {
    HttpCall call{.method = "POST",
                  .url = client.api(push.to, "commit/" + revision_in_url(push.to.revision)),
                  .headers = {"Content-Type: application/x-ndjson"},
                  .body = commit_text(push, parent, files, report.deleted),
                  .stall_s = kLongestAnswer_s};
    const HttpAnswer answer = client.ask(std::move(call), push.to, HubUse::kWrite);
    if (answer.status == 409 || answer.status == 412)
      report.commit = commit_that_was_made(client, push, parent, files, report.deleted);
    else if (answer.status / 100 == 2)
      report.commit = json_of(answer, push.to, client.settings()).at("commitOid");
    else
      client.refuse(answer, push.to, HubUse::kWrite);
  }
  report.url = client.settings().endpoint + "/" + push.to.id + "/commit/" + report.commit;
  return report;
} catch (const Json::exception&) {
  fail(ExitCode::kUnusable, "[hub] {}: expected the answers of a hub from {}, got something else",
       push.to.text(), client.settings().endpoint);
} catch (const fs::filesystem_error& error) {
  fail(ExitCode::kUnusable, "[hub] cannot read {}: {}", push.folder, error.code().message());
}

}  // namespace tycho
