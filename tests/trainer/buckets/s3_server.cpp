// Answers as AWS's documentation of each request says; moto judges the same client
// (tests/host/buckets_peer.sh).
#include "tests/trainer/buckets/s3_server.h"

#include <fmt/format.h>

#include <cstdlib>

#include "trainer/base/hmac.h"
#include "trainer/base/text/base64.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/http/xml_text.h"

namespace tycho::testing {
namespace {

constexpr std::string_view kBucket = "/bucket";

}  // namespace

ServerReply S3Server::error(int status, const std::string& code) const {
  return {.status = status,
          .body = fmt::format(
              "<?xml version=\"1.0\"?>\n<Error><Code>{0}</Code><Message>It is {0}.</Message></Error>", code),
          .is_whole = true};
}

size_t S3Server::num_unfinished() const {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}

ServerReply S3Server::act(const SeenRequest& request, const std::string& path, const Query& query) {
  if (!path.starts_with(kBucket)) return error(404, "NoSuchBucket");
  if (!header_of(request, "authorization").starts_with("AWS4-HMAC-SHA256 Credential=AKIDTEST/"))
    return error(403, "AccessDenied");
  if (header_of(request, "x-amz-content-sha256") != hex(content_sha256(request.body)))
    return error(400, "XAmzContentSHA256Mismatch");
  if ((request.method == "PUT" || request.method == "POST") &&
      header_of(request, "content-md5") != base64(content_md5(request.body)))
    return error(400, "BadDigest");
  return act_on(request, path.size() > kBucket.size() ? path.substr(kBucket.size() + 1) : "", query);
}

ServerReply S3Server::act_on(const SeenRequest& request, const std::string& key, const Query& query) {
  const std::string& method = request.method;
  if (key.empty()) {
    if (method == "GET" && query.contains("list-type")) return list(query);
    if (method == "GET" && query.contains("uploads")) return list_uploads(query);
    if (method == "POST" && query.contains("delete")) return remove_many(request.body);
    return error(501, "NotImplemented");
  }
  if (method == "PUT") return put(request, key, query);
  if (method == "POST" && query.contains("uploads")) {
    const std::string id = fmt::format("id {:04}/+", ++num_uploads_);
    uploads_[id] = {key, {}, now_s()};
    return good("<InitiateMultipartUploadResult><UploadId>" + id +
                "</UploadId></InitiateMultipartUploadResult>");
  }
  if (query.contains("uploadId") && !uploads_.contains(query.at("uploadId")))
    return error(404, "NoSuchUpload");
  if (method == "POST" && query.contains("uploadId")) return complete(key, query, request.body);
  if (method == "GET" && query.contains("uploadId")) return list_parts(query);
  if (method == "DELETE" && query.contains("uploadId")) {
    uploads_.erase(query.at("uploadId"));
    return good("", {}, 204);
  }
  if (query.empty() && (method == "GET" || method == "HEAD")) return get(request, key);
  return error(501, "NotImplemented");
}

ServerReply S3Server::put(const SeenRequest& request, const std::string& key, const Query& query) {
  const std::string tag = "\"" + hex(content_md5(request.body)) + "\"";
  if (query.contains("partNumber")) {
    const auto upload = uploads_.find(query.at("uploadId"));
    if (upload == uploads_.end()) return error(404, "NoSuchUpload");
    upload->second.parts[std::atoi(query.at("partNumber").c_str())] = request.body;
    ++num_parts_;
    return good("", {"ETag: " + tag});
  }
  if (!query.empty()) return error(501, "NotImplemented");
  if (request.headers.contains("if-none-match") && objects_.contains(key) && !ignores_conditions)
    return error(412, "PreconditionFailed");
  objects_[key] = {request.body, tag};
  return good("", {"ETag: " + tag});
}

ServerReply S3Server::get(const SeenRequest& request, const std::string& key) const {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return error(404, "NoSuchKey");
  const std::string& bytes = found->second.bytes;
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) return good(bytes, {"ETag: " + found->second.tag});
  char* end = nullptr;
  const size_t begin = std::strtoull(range->second.c_str() + 6, &end, 10);
  const size_t last = std::strtoull(end + 1, nullptr, 10);
  if (begin >= bytes.size()) return error(416, "InvalidRange");
  return good(bytes.substr(begin, last - begin + 1), {"ETag: " + found->second.tag}, 206);
}

ServerReply S3Server::list(const Query& query) const {
  const std::string prefix = query.at("prefix");
  const std::string after = query.contains("continuation-token") ? query.at("continuation-token") : "";
  std::string xml = "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\">", last;
  size_t count = 0;
  bool is_cut = false;
  for (auto at = objects_.upper_bound(after); at != objects_.end() && !is_cut; ++at) {
    if (!at->first.starts_with(prefix)) continue;
    if (count++ == page) {
      is_cut = true;
      break;
    }
    last = at->first;
    xml += fmt::format(
        "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
        xml_escaped(last), time_text(now_s(), "%Y-%m-%dT%H:%M:%S.000Z"), at->second.tag,
        at->second.bytes.size());
  }
  if (is_cut) xml += "<NextContinuationToken>" + xml_escaped(last) + "</NextContinuationToken>";
  return good(xml + fmt::format("<IsTruncated>{}</IsTruncated></ListBucketResult>", is_cut));
}

ServerReply S3Server::list_uploads(const Query& query) const {
  const std::string marker = query.contains("upload-id-marker") ? query.at("upload-id-marker") : "";
  std::string xml = "<ListMultipartUploadsResult>", last;
  size_t count = 0;
  bool is_cut = false;
  for (const auto& [id, upload] : uploads_) {
    if (!upload.key.starts_with(query.at("prefix")) || id <= marker) continue;
    if (count++ == page) {
      is_cut = true;
      break;
    }
    last = id;
    xml += fmt::format("<Upload><Key>{}</Key><UploadId>{}</UploadId><Initiated>{}</Initiated></Upload>",
                       xml_escaped(upload.key), id, time_text(upload.begun_s, "%Y-%m-%dT%H:%M:%S.000Z"));
  }
  if (is_cut)
    xml += fmt::format("<NextKeyMarker>{}</NextKeyMarker><NextUploadIdMarker>{}</NextUploadIdMarker>",
                       xml_escaped(uploads_.at(last).key), last);
  return good(xml + fmt::format("<IsTruncated>{}</IsTruncated></ListMultipartUploadsResult>", is_cut));
}

ServerReply S3Server::list_parts(const Query& query) const {
  const int marker =
      query.contains("part-number-marker") ? std::atoi(query.at("part-number-marker").c_str()) : 0;
  std::string xml = "<ListPartsResult>";
  size_t count = 0;
  int last = 0;
  bool is_cut = false;
  for (const auto& [number, bytes] : uploads_.at(query.at("uploadId")).parts) {
    if (number <= marker) continue;
    if (count++ == 2) {
      is_cut = true;
      break;
    }
    last = number;
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>\"{}\"</ETag><Size>{}</Size></Part>", number,
                       hex(content_md5(bytes)), bytes.size());
  }
  if (is_cut) xml += fmt::format("<NextPartNumberMarker>{}</NextPartNumberMarker>", last);
  return good(xml + fmt::format("<IsTruncated>{}</IsTruncated></ListPartsResult>", is_cut));
}

ServerReply S3Server::remove_many(const std::string& body) {
  for (const std::string_view object : xml_elements(body, "Object")) objects_.erase(xml_value(object, "Key"));
  return good("<?xml version=\"1.0\"?>\n<DeleteResult></DeleteResult>");
}

ServerReply S3Server::complete(const std::string& key, const Query& query, const std::string& body) {
  const Upload& upload = uploads_.at(query.at("uploadId"));
  std::string bytes, digests;
  int previous = 0;
  for (const std::string_view part : xml_elements(body, "Part")) {
    const int number = std::atoi(xml_value(part, "PartNumber").c_str());
    const auto stored = upload.parts.find(number);
    if (number <= previous || stored == upload.parts.end() ||
        xml_value(part, "ETag") != "\"" + hex(content_md5(stored->second)) + "\"")
      return error(400, "InvalidPart");
    bytes += stored->second;
    digests += content_md5(stored->second);
    previous = number;
  }
  objects_[key] = {bytes, fmt::format("\"{}-{}\"", hex(content_md5(digests)), digests.size() / 16)};
  uploads_.erase(query.at("uploadId"));
  return good("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
}

}  // namespace tycho::testing
