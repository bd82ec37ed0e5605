// Put Block for each part, then Put Block List.
#include "trainer/buckets/azure_upload.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/hmac.h"
#include "trainer/base/in_parallel.h"
#include "trainer/base/text/base64.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/buckets/file_parts.h"
#include "trainer/http/xml_text.h"

namespace tycho {
namespace {

constexpr int64_t kMostParts = 50000;
constexpr const char* kDigestHeader = "x-ms-meta-tychoparts";  // tells equal blobs without reading them

class AzureUpload {
 public:
  AzureUpload(const AzureConnection& connection, std::string name, const FileParts& file,
              const UploadOptions& options, std::stop_token stop)
      : connection_(connection),
        name_(std::move(name)),
        file_(file),
        options_(options),
        stop_(std::move(stop)) {}

  /// True if the blob is there already, as after a kill behind the last answer.
  bool is_stored() const {
    const StoreAnswer head = connection_.ask({.method = "HEAD", .name = name_}, "", {404}, stop_);
    if (head.http.status != 200 || head.http.header("content-length") != std::to_string(file_.num_bytes()))
      return false;
    if (file_.count() <= 1)
      return head.http.header("content-md5") == base64(content_md5(file_.count() ? file_.read(0) : ""));
    std::string digests;
    for (size_t part = 0; part < file_.count(); ++part) {
      if (stop_.stop_requested()) return false;
      digests += content_md5(file_.read(part));
    }
    return head.http.header(kDigestHeader) == tag_of(digests);
  }

  void put_whole() const {
    connection_.ask({.method = "PUT", .name = name_, .headers = {{"x-ms-blob-type", "BlockBlob"}}},
                    file_.count() ? file_.read(0) : "", {}, stop_);
    report(file_.num_bytes());
  }

  void put_parts() {
    // Blocks are lost when another process writes the blob meanwhile: then once more from the beginning.
    for (int tries_left = 1; !try_parts(); --tries_left)
      if (tries_left == 0)
        fail(ExitCode::kStorage, "[bucket] {}: the store has lost the blocks of the upload twice",
             connection_.place_of(name_));
  }

 private:
  static std::string tag_of(const std::string& digests) {
    return fmt::format("{}-{}", hex(content_md5(digests)), digests.size() / 16);
  }

  void report(int64_t num_bytes) const {
    if (options_.progress) options_.progress(num_bytes);
  }

  /// Returns false when the store has not kept the blocks.
  bool try_parts() {
    list_blocks();
    ids_.assign(file_.count(), "");
    digests_ = ids_;
    in_parallel(file_.count(), static_cast<size_t>(options_.num_connections), stop_,
                [&](size_t part, const std::stop_token& stop) { put_part(part, stop); });
    std::string xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>", digests;
    for (const std::string& id : ids_) xml += "<Latest>" + id + "</Latest>";
    for (const std::string& digest : digests_) digests += digest;
    const StoreAnswer answer = connection_.ask({.method = "PUT",
                                                .name = name_,
                                                .query = {{"comp", "blocklist"}},
                                                .headers = {{kDigestHeader, tag_of(digests)}}},
                                               xml + "</BlockList>", {400}, stop_);
    if (answer.http.status != 400) return true;
    if (const std::string code = store_code(answer.http); code != "InvalidBlockList")
      fail(ExitCode::kUnusable, "[bucket] {}: expected the blocks to become a blob, got {}",
           connection_.place_of(name_), code);
    return false;
  }

  /// Notes the blocks that an unfinished upload has left.
  void list_blocks() {
    stored_.clear();
    const StoreAnswer answer =
        connection_.ask({.name = name_, .query = {{"comp", "blocklist"}, {"blocklisttype", "uncommitted"}}},
                        "", {404}, stop_);
    if (answer.http.status == 404) return;
    for (const std::string_view block : xml_elements(answer.http.body, "Block"))
      stored_.insert(xml_value(block, "Name") + " " + xml_value(block, "Size"));
  }

  void put_part(size_t part, const std::stop_token& stop) {
    const std::string bytes = file_.read(part);
    const std::string digest = content_md5(bytes);
    const std::string id = base64(fmt::format("{:05}-{}", part, hex(digest)));
    if (!stored_.contains(id + " " + std::to_string(bytes.size())))
      connection_.ask({.method = "PUT", .name = name_, .query = {{"comp", "block"}, {"blockid", id}}}, bytes,
                      {}, stop);
    const std::lock_guard lock(mutex_);
    ids_[part] = id;
    digests_[part] = digest;
    report(static_cast<int64_t>(bytes.size()));
  }

  const AzureConnection& connection_;
  std::string name_;
  const FileParts& file_;
  const UploadOptions& options_;
  std::stop_token stop_;
  std::set<std::string> stored_;  // "ID SIZE"
  std::mutex mutex_;
  std::vector<std::string> ids_, digests_;
};

}  // namespace

void upload_to_azure(const AzureConnection& connection, const std::string& name, const std::string& path,
                     int64_t num_bytes, const UploadOptions& options, const std::stop_token& stop) {
  const FileParts file(path, num_bytes, part_bytes_of(num_bytes, kMostParts, options));
  AzureUpload upload(connection, name, file, options, stop);
  if (upload.is_stored()) {
    if (options.progress) options.progress(num_bytes);
  } else if (file.count() <= 1) {
    upload.put_whole();
  } else {
    upload.put_parts();
  }
}

}  // namespace tycho
