// Multi-part uploads. The store keeps the parts of a killed process, and their MD5 tell what they hold.
#include "trainer/buckets/s3_upload.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "trainer/base/error.h"
#include "trainer/base/hmac.h"
#include "trainer/base/in_parallel.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/buckets/file_parts.h"
#include "trainer/http/xml_text.h"

namespace tycho {
namespace {

constexpr int64_t kMostParts = 10000;

std::string without_quotes(std::string tag) {
  std::erase(tag, '"');
  return tag;
}

class S3Upload {
 public:
  S3Upload(const S3Connection& connection, std::string name, const FileParts& file,
           const UploadOptions& options, std::stop_token stop)
      : connection_(connection),
        name_(std::move(name)),
        file_(file),
        options_(options),
        stop_(std::move(stop)) {}

  /// True if the object is there already, as after a kill behind the last answer.
  bool is_stored() const {
    const StoreAnswer head = connection_.ask({.method = "HEAD", .name = name_}, "", {404, 403}, stop_);
    if (head.http.status != 200 || head.http.header("content-length") != std::to_string(file_.num_bytes()))
      return false;
    if (file_.count() <= 1)
      return without_quotes(head.http.header("etag")) == hex(content_md5(file_.count() ? file_.read(0) : ""));
    std::string digests;
    for (size_t part = 0; part < file_.count(); ++part) {
      if (stop_.stop_requested()) return false;
      digests += content_md5(file_.read(part));
    }
    return without_quotes(head.http.header("etag")) == tag_of(digests);
  }

  void put_whole() const {
    connection_.ask({.method = "PUT", .name = name_}, file_.count() ? file_.read(0) : "", {}, stop_);
    report(file_.num_bytes());
  }

  void put_parts() {
    // An upload can be aborted by another process meanwhile: then once more from its beginning.
    for (int tries_left = 1; !try_parts(); --tries_left)
      if (tries_left == 0)
        fail(ExitCode::kStorage, "[bucket] {}: the store has lost the parts of the upload twice",
             connection_.place_of(name_));
  }

 private:
  static std::string tag_of(const std::string& digests) {
    return hex(content_md5(digests)) + "-" + std::to_string(digests.size() / 16);
  }

  void report(int64_t num_bytes) const {
    if (options_.progress) options_.progress(num_bytes);
  }

  /// Returns false when the upload does not exist any more.
  bool try_parts() {
    find_or_begin();
    tags_.assign(file_.count(), "");
    digests_ = tags_;
    bool lost = false;
    in_parallel(file_.count(), static_cast<size_t>(options_.num_connections), stop_,
                [&](size_t part, const std::stop_token& stop) {
                  if (!put_part(part, stop)) {
                    const std::lock_guard lock(mutex_);
                    lost = true;
                  }
                });
    return !lost && complete();
  }

  /// Sets the id of the newest unfinished upload to this name, and its parts; or begins one.
  void find_or_begin() {
    const std::string key = connection_.key_of(name_);
    stored_.clear();
    std::string begun, newest;
    const StoreAnswer answer = connection_.ask({.query = {{"uploads", ""}, {"prefix", key}}}, "", {}, stop_);
    for (const std::string_view upload : xml_elements(answer.http.body, "Upload"))
      if (xml_value(upload, "Key") == key && xml_value(upload, "Initiated") >= newest)
        newest = xml_value(upload, "Initiated"), begun = xml_value(upload, "UploadId");
    if (!begun.empty() && list_parts(begun)) {
      id_ = begun;
      return;
    }
    const StoreAnswer made =
        connection_.ask({.method = "POST", .name = name_, .query = {{"uploads", ""}}}, "", {}, stop_);
    id_ = xml_value(made.http.body, "UploadId");
    if (id_.empty())
      fail(ExitCode::kStorage, "[bucket] {}: expected the id of an upload, got an answer without one",
           connection_.place_of(name_));
  }

  /// Returns false when the upload has ended meanwhile.
  bool list_parts(const std::string& id) {
    std::string marker;
    do {
      S3Call call{.name = name_, .query = {{"uploadId", id}}};
      if (!marker.empty()) call.query.emplace_back("part-number-marker", marker);
      const StoreAnswer answer = connection_.ask(call, "", {404}, stop_);
      if (answer.http.status == 404) return false;
      for (const std::string_view part : xml_elements(answer.http.body, "Part"))
        stored_[std::strtoul(xml_value(part, "PartNumber").c_str(), nullptr, 10) - 1] = {
            without_quotes(xml_value(part, "ETag")), xml_value(part, "Size")};
      marker = xml_value(answer.http.body, "IsTruncated") == "true"
                   ? xml_value(answer.http.body, "NextPartNumberMarker")
                   : "";
    } while (!marker.empty());
    return true;
  }

  /// Returns false when the upload does not exist any more.
  bool put_part(size_t part, const std::stop_token& stop) {
    const std::string bytes = file_.read(part);
    const std::string digest = content_md5(bytes);
    std::string tag = hex(digest);
    const auto stored = stored_.find(part);
    if (stored == stored_.end() || stored->second.first != tag ||
        stored->second.second != std::to_string(bytes.size())) {
      const StoreAnswer answer =
          connection_.ask({.method = "PUT",
                           .name = name_,
                           .query = {{"partNumber", std::to_string(part + 1)}, {"uploadId", id_}}},
                          bytes, {404}, stop);
      if (answer.http.status == 404) return false;
      tag = without_quotes(answer.http.header("etag"));
    }
    const std::lock_guard lock(mutex_);
    tags_[part] = tag;
    digests_[part] = digest;
    report(static_cast<int64_t>(bytes.size()));
    return true;
  }

  /// Returns false when the upload does not exist any more and the object does not either.
  bool complete() const {
    std::string xml = "<CompleteMultipartUpload>", digests;
    for (size_t part = 0; part < tags_.size(); ++part) {
      xml +=
          fmt::format("<Part><PartNumber>{}</PartNumber><ETag>\"{}\"</ETag></Part>", part + 1, tags_[part]);
      digests += digests_[part];
    }
    xml += "</CompleteMultipartUpload>";
    const StoreAnswer answer =
        connection_.ask({.method = "POST", .name = name_, .query = {{"uploadId", id_}}}, xml, {404}, stop_);
    // A first try may have been stored without an answer: then the upload has ended.
    const StoreAnswer head = connection_.ask({.method = "HEAD", .name = name_}, "", {404}, stop_);
    const bool has_size = head.http.header("content-length") == std::to_string(file_.num_bytes());
    if (answer.http.status == 404)
      return head.http.status == 200 && has_size &&
             without_quotes(head.http.header("etag")) == tag_of(digests);
    if (head.http.status != 200 || !has_size)
      fail(ExitCode::kStorage, "[bucket] {}: expected an object of {} bytes after its upload, got {}",
           connection_.place_of(name_), file_.num_bytes(),
           head.http.status == 200 ? head.http.header("content-length") + " bytes" : "none");
    return true;
  }

  const S3Connection& connection_;
  std::string name_;
  const FileParts& file_;
  const UploadOptions& options_;
  std::stop_token stop_;
  std::string id_;
  std::map<size_t, std::pair<std::string, std::string>> stored_;  // by an earlier upload: MD5 in hex, size
  std::mutex mutex_;
  std::vector<std::string> tags_, digests_;
};

}  // namespace

void upload_to_s3(const S3Connection& connection, const std::string& name, const std::string& path,
                  int64_t num_bytes, const UploadOptions& options, const std::stop_token& stop) {
  const FileParts file(path, num_bytes, part_bytes_of(num_bytes, kMostParts, options));
  S3Upload upload(connection, name, file, options, stop);
  if (upload.is_stored()) {
    if (options.progress) options.progress(num_bytes);
  } else if (file.count() <= 1) {
    upload.put_whole();
  } else {
    upload.put_parts();
  }
}

}  // namespace tycho
