// One request for each function, or one for each page or part.
#include "trainer/buckets/s3_bucket.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/buckets/ranged_bucket.h"
#include "trainer/buckets/s3_upload.h"
#include "trainer/http/retry_wait.h"
#include "trainer/http/xml_text.h"

namespace tycho {
namespace {

constexpr size_t kMostRemoved = 1000;

class S3Bucket final : public RangedBucket {
 public:
  S3Bucket(const RemoteUri& place, const RequestTries& tries) : connection_(place, tries) {}

  std::string place_of(const std::string& name) const override { return connection_.place_of(name); }

  bool put(const std::string& name, const std::string& bytes, PutWhen when,
           const std::stop_token& stop) override {
    check_object_name(name, connection_.place().text);
    if (when == PutWhen::kAlways) {
      connection_.ask({.method = "PUT", .name = name}, bytes, {}, stop);
      return true;
    }
    const StoreAnswer answer = put_absent(name, bytes, stop);
    if (answer.http.status == 412)
      return answer.num_tries > 1 && first_bytes(name, bytes.size() + 1, stop) == bytes;
    // A store that does not know the condition would let two runs take one lease.
    if (!keeps_conditions_ && put_absent(name, bytes, stop).http.status != 412)
      fail(ExitCode::kUnusable,
           "[bucket] {}: the store ignores If-None-Match, so that two runs could write to one place; use a "
           "store with conditional writes, such as S3, MinIO, Ceph or R2",
           place_of(name));
    keeps_conditions_ = true;
    return true;
  }

  void put_file(const std::string& name, const std::string& path, int64_t num_bytes,
                const UploadOptions& options, const std::stop_token& stop) override {
    check_object_name(name, connection_.place().text);
    upload_to_s3(connection_, name, path, num_bytes, options, stop);
  }

  std::vector<StoredObject> list(const std::string& prefix, const std::stop_token& stop) override {
    std::vector<StoredObject> found;
    const size_t skipped = connection_.key_of("").size();
    std::string token;
    do {
      S3Call call{.query = {{"list-type", "2"}, {"prefix", connection_.key_of(prefix)}}};
      if (!token.empty()) call.query.emplace_back("continuation-token", token);
      const StoreAnswer answer = connection_.ask(call, "", {}, stop);
      for (const std::string_view object : xml_elements(answer.http.body, "Contents")) {
        std::string key = xml_value(object, "Key");
        if (key.size() <= skipped || key.ends_with('/')) continue;  // a "folder" that a console made
        found.push_back({key.substr(skipped), std::atoll(xml_value(object, "Size").c_str()),
                         xml_value(object, "ETag"), store_time_s(xml_value(object, "LastModified"))});
      }
      token = xml_value(answer.http.body, "IsTruncated") == "true"
                  ? xml_value(answer.http.body, "NextContinuationToken")
                  : "";
    } while (!token.empty());
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
  }

  void remove(const std::vector<std::string>& names, const std::stop_token& stop) override {
    for (const std::string& name : names) check_object_name(name, connection_.place().text);
    if (connection_.is_google()) {
      for (const std::string& name : names)
        connection_.ask({.method = "DELETE", .name = name}, "", {404}, stop);
      return;
    }
    for (size_t begin = 0; begin < names.size(); begin += kMostRemoved)
      remove_some({names.begin() + static_cast<std::ptrdiff_t>(begin),
                   names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), begin + kMostRemoved))},
                  stop);
  }

  int abort_unfinished(const std::string& prefix, double older_than_s, const std::stop_token& stop) override {
    int num_aborted = 0;
    std::string key_marker, id_marker;
    do {
      S3Call call{.query = {{"uploads", ""}, {"prefix", connection_.key_of(prefix)}}};
      if (!key_marker.empty())
        call.query.insert(call.query.end(), {{"key-marker", key_marker}, {"upload-id-marker", id_marker}});
      const StoreAnswer answer = connection_.ask(call, "", {}, stop);
      const double now_s = store_time_s(answer.http.header("date"));
      for (const std::string_view upload : xml_elements(answer.http.body, "Upload")) {
        if (store_time_s(xml_value(upload, "Initiated")) >= now_s - older_than_s) continue;
        const std::string name = xml_value(upload, "Key").substr(connection_.key_of("").size());
        connection_.ask(
            {.method = "DELETE", .name = name, .query = {{"uploadId", xml_value(upload, "UploadId")}}}, "",
            {404}, stop);
        ++num_aborted;
      }
      const bool more = xml_value(answer.http.body, "IsTruncated") == "true";
      key_marker = more ? xml_value(answer.http.body, "NextKeyMarker") : "";
      id_marker = more ? xml_value(answer.http.body, "NextUploadIdMarker") : "";
    } while (!key_marker.empty());
    return num_aborted;
  }

 private:
  StoreAnswer put_absent(const std::string& name, const std::string& bytes, const std::stop_token& stop) {
    S3Call call{.method = "PUT", .name = name};
    if (connection_.is_google())
      call.headers.emplace_back("x-goog-if-generation-match", "0");
    else
      call.headers.emplace_back("if-none-match", "*");
    return connection_.ask(call, bytes, {412}, stop);
  }

  std::optional<std::string> range(const std::string& name, int64_t offset, size_t count,
                                   const std::stop_token& stop) override {
    const std::string bytes = fmt::format("bytes={}-{}", offset, offset + static_cast<int64_t>(count) - 1);
    const StoreAnswer answer =
        connection_.ask({.name = name, .headers = {{"range", bytes}}}, "", {404, 416}, stop);
    if (answer.http.status == 404) return std::nullopt;
    if (answer.http.status == 416) return "";
    const std::string& body = answer.http.body;
    if (answer.http.status == 206) return body.substr(0, count);
    // A store that does not know ranges sends everything.
    return std::cmp_less(offset, body.size()) ? body.substr(static_cast<size_t>(offset), count) : "";
  }

  void remove_some(std::vector<std::string> names, const std::stop_token& stop) {
    double wait_s = connection_.tries().first_wait_s;
    for (int64_t tries_left = connection_.tries().retries;; --tries_left) {
      std::string xml = "<Delete><Quiet>true</Quiet>";
      for (const std::string& name : names)
        xml += "<Object><Key>" + xml_escaped(connection_.key_of(name)) + "</Key></Object>";
      const StoreAnswer answer =
          connection_.ask({.method = "POST", .query = {{"delete", ""}}}, xml + "</Delete>", {}, stop);
      names.clear();
      for (const std::string_view error : xml_elements(answer.http.body, "Error")) {
        const std::string code = xml_value(error, "Code");
        const std::string name = xml_value(error, "Key").substr(connection_.key_of("").size());
        if (code == "NoSuchKey") continue;
        const bool may_pass = code == "InternalError" || code == "SlowDown";
        if (!may_pass || tries_left == 0)
          fail(may_pass ? ExitCode::kStorage : ExitCode::kUnusable,
               "[bucket] cannot remove {}: the store answers {}", place_of(name), code);
        names.push_back(name);
      }
      if (names.empty()) return;
      if (!wait_to_retry(with_jitter(wait_s), stop))
        fail(ExitCode::kTerminated, "[bucket] stopped at {}", connection_.place().text);
      wait_s = std::min(2 * wait_s, connection_.tries().longest_wait_s);
    }
  }

  S3Connection connection_;
  std::atomic<bool> keeps_conditions_ = false;  // the store has refused a second object of a name
};

}  // namespace

std::unique_ptr<Bucket> make_s3_bucket(const RemoteUri& place, const RequestTries& tries) {
  return std::make_unique<S3Bucket>(place, tries);
}

}  // namespace tycho
