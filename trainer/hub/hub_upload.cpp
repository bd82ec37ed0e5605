// The token goes to the hub for batches and verifications, never to the store, whose addresses are signed.
#include "trainer/hub/hub_upload.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/base/in_parallel.h"
#include "trainer/http/answer_line.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRenewals = 3;          // of the addresses of one file
constexpr double kLongestAnswer_s = 600;  // a store joins the parts of a large file before it answers
constexpr const char* kLfsType = "application/vnd.git-lfs+json";

/// Returns what the hub says to do for each object: null where the store has it.
std::map<std::string, Json> ask_batch(const HubClient& client, const HubName& to,
                                      const std::vector<const HubUpload*>& files) {
  Json objects = Json::array();
  for (const HubUpload* file : files) objects.push_back({{"oid", file->hash}, {"size", file->num_bytes}});
  const Json body = {{"operation", "upload"},
                     {"transfers", {"basic", "multipart"}},
                     {"objects", objects},
                     {"hash_algo", "sha256"},
                     {"ref", {{"name", to.revision.empty() ? "main" : to.revision}}}};
  const std::string url = client.settings().endpoint + "/" + to.id + ".git/info/lfs/objects/batch";
  const HttpAnswer answer =
      client.send({.method = "POST",
                   .url = url,
                   .headers = {std::string("Accept: ") + kLfsType, std::string("Content-Type: ") + kLfsType},
                   .body = body.dump()},
                  to, HubUse::kWrite);
  std::map<std::string, Json> actions;
  const Json answers = json_of(answer, to, client.settings());
  for (const Json& one : answers.at("objects")) {
    const std::string oid = one.at("oid");
    if (one.contains("error")) {
      const auto file =
          std::find_if(files.begin(), files.end(), [&](const auto* f) { return f->hash == oid; });
      fail(ExitCode::kUnusable, "[hub] the hub refuses {} for {}: {}",
           file == files.end() ? oid : (*file)->path, to.text(),
           answer_line(one.at("error").value("message", "no reason given")));
    }
    actions[oid] = one.value("actions", Json());
  }
  return actions;
}

/// Sends the bytes [begin, end) of a file. Returns nothing when the address is refused: a signed one expires.
std::optional<HttpAnswer> put(const HubClient& client, const std::string& url, const HubUpload& file,
                              int64_t begin, int64_t end) {
  HttpAnswer answer = client.exchange(
      {.method = "PUT", .url = url, .body_file = file.file, .body_begin = begin, .body_end = end}, false,
      file.path);
  if (answer.status / 100 != 2) return std::nullopt;
  return answer;
}

/// An upload in parts as a file of this machine: its addresses, then a line for each part that arrived.
/// Another upload of the same file has other addresses, and the store does not join parts of both. The
/// addresses are signed: whoever has them may write, so only the owner may read the file.
class KeptUpload {
 public:
  KeptUpload(const HubClient& client, const HubName& to, const HubUpload& file)
      : path_(fmt::format("{}/.locks/.uploads.tycho/{}", client.settings().cache,
                          hash_hex(client.settings().endpoint + " " + to.id + " " + file.hash))) {}

  /// Returns the upload to go on with: the kept one, else `fresh`, which is kept from now on.
  Json begin(const Json& fresh) {
    std::istringstream lines(fs::exists(path_) ? read_file(path_) : "");
    Json upload;
    for (std::string line; std::getline(lines, line);) {
      const Json one = Json::parse(line, nullptr, false);
      if (one.is_discarded()) break;  // the last line of a killed push
      if (upload.is_null())
        upload = one;
      else
        etags_[one.at("partNumber").get<long>()] = one.at("etag").get<std::string>();
    }
    if (!upload.is_null()) return upload;
    make_dirs(real_files(), fs::path(path_).parent_path().string());
    write_file_atomically(real_files(), path_, fresh.dump() + "\n", Readers::kOwner);
    return fresh;
  }
  const std::string* etag(long part) const {
    const auto found = etags_.find(part);
    return found == etags_.end() ? nullptr : &found->second;
  }
  void add(long part, const std::string& etag) {
    etags_[part] = etag;
    const std::string line = Json{{"partNumber", part}, {"etag", etag}}.dump() + "\n";
    real_files().append(path_)->write(line.data(), line.size());
  }
  void forget() {
    std::error_code error;
    fs::remove(path_, error);
  }

 private:
  std::string path_;
  std::map<long, std::string> etags_;
};

/// Sends a file in parts of `part_bytes`, then asks the hub to join them. Adds the sent bytes to
/// `sent_bytes`.
bool put_parts(const HubClient& client, const HubName& to, const HubUpload& file, const Json& upload,
               int64_t part_bytes, KeptUpload& kept, std::atomic<int64_t>& sent_bytes) {
  std::map<long, std::string> urls;
  for (const auto& [name, url] : upload.at("header").items())
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos)
      urls[std::strtol(name.c_str(), nullptr, 10)] = url.get<std::string>();
  if (part_bytes <= 0 || static_cast<int64_t>(urls.size()) != (file.num_bytes + part_bytes - 1) / part_bytes)
    fail(ExitCode::kUnusable, "[hub] {}: expected an address for each part of {}, got {} from {}", to.text(),
         file.path, urls.size(), client.settings().endpoint);
  Json parts = Json::array();
  int64_t begin = 0;
  for (const auto& [number, url] : urls) {
    const int64_t end = std::min(begin + part_bytes, file.num_bytes);
    if (kept.etag(number) == nullptr) {
      const auto answer = put(client, url, file, begin, end);
      if (!answer) return false;
      kept.add(number, answer->header("etag"));
      sent_bytes += end - begin;
    }
    parts.push_back({{"partNumber", number}, {"etag", *kept.etag(number)}});
    begin = end;
  }
  const HttpAnswer joined = client.exchange(
      {.method = "POST",
       .url = absolute_url(upload.at("href"), client.settings().endpoint),
       .headers = {std::string("Accept: ") + kLfsType, std::string("Content-Type: ") + kLfsType},
       .body = Json{{"oid", file.hash}, {"parts", parts}}.dump(),
       .stall_s = kLongestAnswer_s},
      false, file.path);
  return joined.status / 100 == 2;
}

/// Does what the hub says for one file. Returns false when an address is refused.
bool send_file(const HubClient& client, const HubName& to, const HubUpload& file, const Json& actions,
               std::atomic<int64_t>& sent_bytes) {
  KeptUpload kept(client, to, file);
  const bool has_parts = actions.at("upload").value("header", Json::object()).contains("chunk_size");
  const Json upload = has_parts ? kept.begin(actions.at("upload")) : actions.at("upload");
  const Json size = upload.value("header", Json::object()).value("chunk_size", Json());
  const std::string url = absolute_url(upload.at("href"), client.settings().endpoint);
  const int64_t part_bytes = size.is_string()   ? std::strtoll(size.get<std::string>().c_str(), nullptr, 10)
                             : size.is_number() ? size.get<int64_t>()
                                                : 0;
  bool is_sent = false;
  if (has_parts) {
    is_sent = put_parts(client, to, file, upload, part_bytes, kept, sent_bytes);
    kept.forget();  // joined, or refused: its addresses have expired
  } else if (put(client, url, file, 0, file.num_bytes)) {
    is_sent = true;
    sent_bytes += file.num_bytes;
  }
  if (!is_sent || !actions.contains("verify")) return is_sent;
  const std::string verify = absolute_url(actions.at("verify").at("href"), client.settings().endpoint);
  const HttpAnswer answer =
      client.exchange({.method = "POST",
                       .url = verify,
                       .headers = {"Content-Type: application/json"},
                       .body = Json{{"oid", file.hash}, {"size", file.num_bytes}}.dump()},
                      client.is_hub(verify), file.path);
  if (answer.status == 401 || answer.status == 403) client.refuse(answer, to, HubUse::kWrite);
  if (answer.status / 100 != 2)
    fail(ExitCode::kUnusable,
         "[hub] {}: {} did not arrive whole (status {}); nothing was committed: type the same command again",
         to.text(), file.path, answer.status);
  return true;
}

}  // namespace

int64_t send_large_files(const HubClient& client, const HubName& to, const std::vector<HubUpload>& files) {
  std::vector<const HubUpload*> large;
  for (const HubUpload& file : files)
    if (file.is_large) large.push_back(&file);
  std::atomic<int64_t> sent_bytes = 0;
  for (size_t begin = 0; begin < large.size(); begin += kHubBatchFiles) {
    const std::vector<const HubUpload*> batch(
        large.begin() + static_cast<ptrdiff_t>(begin),
        large.begin() + static_cast<ptrdiff_t>(std::min(begin + kHubBatchFiles, large.size())));
    const std::map<std::string, Json> actions = ask_batch(client, to, batch);
    in_parallel(batch.size(), kHubUploadThreads, [&](size_t i) {
      const HubUpload& file = *batch[i];
      const auto found = actions.find(file.hash);
      Json what = found == actions.end() ? Json() : found->second;
      for (int renewals = 0; !what.is_null(); ++renewals) {
        if (send_file(client, to, file, what, sent_bytes)) return;
        if (renewals == kMostRenewals)
          fail(
              ExitCode::kUnusable,
              "[hub] {}: the host that the hub names for {} refuses it; nothing was committed: type the same "
              "command again, files that arrived are not sent again",
              to.text(), file.path);
        what = ask_batch(client, to, {&file})[file.hash];
      }
    });
  }
  return sent_bytes;
}

}  // namespace tycho
