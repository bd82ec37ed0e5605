// One request for each function, or one for each page or block.
#include "trainer/buckets/azure_bucket.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "trainer/base/error.h"
#include "trainer/buckets/azure_connection.h"
#include "trainer/buckets/azure_upload.h"
#include "trainer/buckets/ranged_bucket.h"
#include "trainer/http/xml_text.h"

namespace tycho {
namespace {

class AzureBucket final : public RangedBucket {
 public:
  AzureBucket(const RemoteUri& place, const RequestTries& tries) : connection_(place, tries) {}

  std::string place_of(const std::string& name) const override { return connection_.place_of(name); }

  bool put(const std::string& name, const std::string& bytes, PutWhen when,
           const std::stop_token& stop) override {
    check_object_name(name, connection_.place().text);
    AzureCall call{.method = "PUT", .name = name, .headers = {{"x-ms-blob-type", "BlockBlob"}}};
    if (when == PutWhen::kAlways) {
      connection_.ask(call, bytes, {}, stop);
      return true;
    }
    call.headers.emplace_back("If-None-Match", "*");
    const StoreAnswer answer = connection_.ask(call, bytes, {409, 412}, stop);
    if (answer.http.status / 100 == 2) return true;
    const std::string code = store_code(answer.http);
    if (code != "BlobAlreadyExists" && code != "ConditionNotMet")
      fail(ExitCode::kUnusable, "[bucket] {}: expected the blob to be written, got {} ({})", place_of(name),
           answer.http.status, code);
    return answer.num_tries > 1 && first_bytes(name, bytes.size() + 1, stop) == bytes;
  }

  void put_file(const std::string& name, const std::string& path, int64_t num_bytes,
                const UploadOptions& options, const std::stop_token& stop) override {
    check_object_name(name, connection_.place().text);
    upload_to_azure(connection_, name, path, num_bytes, options, stop);
  }

  std::vector<StoredObject> list(const std::string& prefix, const std::stop_token& stop) override {
    double now_s = 0;
    std::vector<StoredObject> found = list_blobs(prefix, "", now_s, stop);
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
  }

  void remove(const std::vector<std::string>& names, const std::stop_token& stop) override {
    for (const std::string& name : names) check_object_name(name, connection_.place().text);
    for (const std::string& name : names)
      connection_.ask({.method = "DELETE", .name = name, .headers = {{"x-ms-delete-snapshots", "include"}}},
                      "", {404}, stop);
  }

  int abort_unfinished(const std::string& prefix, double older_than_s, const std::stop_token& stop) override {
    double now_s = 0;
    std::set<std::string> whole;
    for (const StoredObject& blob : list_blobs(prefix, "", now_s, stop)) whole.insert(blob.name);
    int num_aborted = 0;
    for (const StoredObject& blob : list_blobs(prefix, "uncommittedblobs", now_s, stop)) {
      // Azure may give no time for blocks without a blob: then they count as new.
      const double since_s = blob.modified_s > 0 ? blob.modified_s : now_s;
      if (whole.contains(blob.name) || since_s >= now_s - older_than_s) continue;
      // Only a blob can be removed. Writing one discards the blocks.
      if (!put(blob.name, "", PutWhen::kAbsent, stop)) continue;
      remove({blob.name}, stop);
      ++num_aborted;
    }
    return num_aborted;
  }

 private:
  std::optional<std::string> range(const std::string& name, int64_t offset, size_t count,
                                   const std::stop_token& stop) override {
    const std::string bytes = fmt::format("bytes={}-{}", offset, offset + static_cast<int64_t>(count) - 1);
    const StoreAnswer answer =
        connection_.ask({.name = name, .headers = {{"x-ms-range", bytes}}}, "", {404, 416}, stop);
    if (answer.http.status == 404) return std::nullopt;
    if (answer.http.status == 416) return "";
    return answer.http.body.substr(0, count);
  }

  /// Returns the blobs of all pages, and sets the time by the store's clock.
  std::vector<StoredObject> list_blobs(const std::string& prefix, const std::string& include, double& now_s,
                                       const std::stop_token& stop) const {
    std::vector<StoredObject> found;
    const size_t skipped = connection_.key_of("").size();
    std::string marker;
    do {
      AzureCall call{
          .query = {{"restype", "container"}, {"comp", "list"}, {"prefix", connection_.key_of(prefix)}}};
      if (!include.empty()) call.query.emplace_back("include", include);
      if (!marker.empty()) call.query.emplace_back("marker", marker);
      const StoreAnswer answer = connection_.ask(call, "", {}, stop);
      now_s = store_time_s(answer.http.header("date"));
      for (const std::string_view blob : xml_elements(answer.http.body, "Blob")) {
        const std::string key = xml_value(blob, "Name");
        // Accounts with folders list these, too.
        if (key.size() <= skipped || xml_value(blob, "ResourceType") == "directory") continue;
        found.push_back({key.substr(skipped), std::atoll(xml_value(blob, "Content-Length").c_str()),
                         xml_value(blob, "Etag"), store_time_s(xml_value(blob, "Last-Modified"))});
      }
      marker = xml_value(answer.http.body, "NextMarker");
    } while (!marker.empty());
    return found;
  }

  AzureConnection connection_;
};

}  // namespace

std::unique_ptr<Bucket> make_azure_bucket(const RemoteUri& place, const RequestTries& tries) {
  return std::make_unique<AzureBucket>(place, tries);
}

}  // namespace tycho
