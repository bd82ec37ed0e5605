// Answers as Azure's documentation of each request says; azure-storage-blob judges it
// (tests/host/azure_peer.sh).
#include "tests/trainer/buckets/azure_server.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "trainer/base/text/base64.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/http/xml_text.h"

namespace tycho::testing {
namespace {

constexpr std::string_view kContainer = "/account/container";

}  // namespace

size_t AzureServer::num_unfinished() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

void AzureServer::forget_blocks() {
  const std::lock_guard lock(mutex_);
  blocks_.clear();
}

ServerReply AzureServer::error(int status, const std::string& code) const {
  return {.status = status,
          .body = fmt::format(
              "<?xml version=\"1.0\"?>\n<Error><Code>{0}</Code><Message>It is {0}.</Message></Error>", code),
          .headers = {"x-ms-error-code: " + code, "Content-Type: application/xml"},
          .is_whole = true};
}

ServerReply AzureServer::act(const SeenRequest& request, const std::string& path, const Query& query) {
  const std::string token = header_of(request, "authorization");
  const auto signature = query.find("sig");
  const bool is_sas = token.empty() && signature != query.end() && signature->second == "sas-of-the-test";
  if (!is_sas && token != "Bearer token-of-the-test") return error(403, "AuthenticationFailed");
  if (header_of(request, "x-ms-version").empty() || header_of(request, "x-ms-date").empty())
    return error(400, "MissingRequiredHeader");
  if (path != kContainer && !path.starts_with(std::string(kContainer) + "/"))
    return error(404, "ContainerNotFound");
  if (const std::string md5 = header_of(request, "content-md5");
      !md5.empty() && md5 != base64(content_md5(request.body)))
    return error(400, "Md5Mismatch");
  Query rest = query;
  rest.erase("sv"), rest.erase("sig");
  ServerReply reply =
      act_on(request, path.size() > kContainer.size() ? path.substr(kContainer.size() + 1) : "", rest);
  if (reply.status < 300)
    reply.headers.push_back(reply.body.starts_with("<?xml") ? "Content-Type: application/xml"
                                                            : "Content-Type: application/octet-stream");
  return reply;
}

ServerReply AzureServer::act_on(const SeenRequest& request, const std::string& key, const Query& query) {
  const std::string& method = request.method;
  const std::string comp = query.contains("comp") ? query.at("comp") : "";
  if (key.empty()) {
    if (method == "GET" && comp == "list" && query.contains("restype")) return list(query);
    return error(501, "NotImplemented");
  }
  if (method == "PUT" && comp == "block") {
    auto& blocks = blocks_[key];
    const std::string& id = query.at("blockid");
    if (!blocks.empty() && blocks.begin()->first.size() != id.size()) return error(400, "InvalidBlobOrBlock");
    blocks[id] = request.body;
    ++num_parts_;
    return good("", {}, 201);
  }
  if (method == "PUT" && comp == "blocklist") return put_list(request, key);
  if (method == "GET" && comp == "blocklist" && query.at("blocklisttype") == "uncommitted") {
    if (!blobs_.contains(key) && !blocks_.contains(key)) return error(404, "BlobNotFound");
    std::string xml = "<?xml version=\"1.0\"?>\n<BlockList><UncommittedBlocks>";
    if (const auto found = blocks_.find(key); found != blocks_.end())
      for (const auto& [id, bytes] : found->second)
        xml += fmt::format("<Block><Name>{}</Name><Size>{}</Size></Block>", id, bytes.size());
    return good(xml + "</UncommittedBlocks></BlockList>");
  }
  if (!query.empty()) return error(501, "NotImplemented");
  if (method == "PUT") {
    if (header_of(request, "x-ms-blob-type") != "BlockBlob") return error(400, "MissingRequiredHeader");
    if (header_of(request, "if-none-match") == "*" && blobs_.contains(key))
      return error(409, "BlobAlreadyExists");
    blobs_[key] = {request.body, base64(content_md5(request.body)), "", ++num_versions_};
    blocks_.erase(key), committed_.erase(key);
    return good("", {}, 201);
  }
  if (method == "DELETE") {
    if (blobs_.erase(key) == 0) return error(404, "BlobNotFound");
    blocks_.erase(key), committed_.erase(key);
    return good("", {}, 202);
  }
  if (method == "GET" || method == "HEAD") return get(request, key);
  return error(501, "NotImplemented");
}

ServerReply AzureServer::put_list(const SeenRequest& request, const std::string& key) {
  if (header_of(request, "if-none-match") == "*" && blobs_.contains(key))
    return error(409, "BlobAlreadyExists");
  std::map<std::string, std::string> known = committed_[key];
  for (const auto& [id, bytes] : blocks_[key]) known[id] = bytes;
  std::map<std::string, std::string> used;
  std::string bytes;
  for (const std::string_view id : xml_elements(request.body, "Latest")) {
    const auto found = known.find(std::string(id));
    if (found == known.end()) return error(400, "InvalidBlockList");
    bytes += found->second;
    used.insert(*found);
  }
  blobs_[key] = {bytes, "", header_of(request, "x-ms-meta-tychoparts"), ++num_versions_};
  blocks_.erase(key);
  committed_[key] = used;
  return good("", {}, 201);
}

ServerReply AzureServer::get(const SeenRequest& request, const std::string& key) const {
  const auto found = blobs_.find(key);
  if (found == blobs_.end()) return error(404, "BlobNotFound");
  const Blob& blob = found->second;
  std::vector<std::string> headers = {fmt::format("ETag: \"0x{:x}\"", blob.version),
                                      "Last-Modified: " + time_text(now_s(), "%a, %d %b %Y %H:%M:%S GMT"),
                                      "x-ms-blob-type: BlockBlob"};
  if (!blob.md5.empty()) headers.push_back("Content-MD5: " + blob.md5);
  if (!blob.parts_digest.empty()) headers.push_back("x-ms-meta-tychoparts: " + blob.parts_digest);
  const std::string range = header_of(request, "x-ms-range");
  if (range.empty()) return good(blob.bytes, headers);
  char* end = nullptr;
  const size_t begin = std::strtoull(range.c_str() + 6, &end, 10);
  const size_t last = std::strtoull(end + 1, nullptr, 10);
  if (begin >= blob.bytes.size()) return error(416, "InvalidRange");
  const std::string part = blob.bytes.substr(begin, last - begin + 1);
  headers.push_back(
      fmt::format("Content-Range: bytes {}-{}/{}", begin, begin + part.size() - 1, blob.bytes.size()));
  return good(part, headers, 206);
}

ServerReply AzureServer::list(const Query& query) const {
  const std::string prefix = query.at("prefix");
  const std::string after = query.contains("marker") ? query.at("marker") : "";
  const bool all = query.contains("include") && query.at("include") == "uncommittedblobs";
  std::set<std::string> names;
  for (const auto& [name, blob] : blobs_) names.insert(name);
  if (all)
    for (const auto& [name, blocks] : blocks_) names.insert(name);
  std::string xml = "<?xml version=\"1.0\"?>\n<EnumerationResults><Blobs>", last;
  size_t count = 0;
  bool is_cut = false;
  for (auto at = names.upper_bound(after); at != names.end() && !is_cut; ++at) {
    if (!at->starts_with(prefix)) continue;
    if (count++ == page) {
      is_cut = true;
      break;
    }
    last = *at;
    const auto blob = blobs_.find(last);
    xml += "<Blob><Name>" + xml_escaped(last) + "</Name><Properties>";
    if (blob != blobs_.end())
      xml += fmt::format(
          "<Last-Modified>{}</Last-Modified><Etag>0x{:x}</Etag><Content-Length>{}</Content-Length>"
          "<BlobType>BlockBlob</BlobType>",
          time_text(now_s(), "%a, %d %b %Y %H:%M:%S GMT"), blob->second.version, blob->second.bytes.size());
    xml += "</Properties></Blob>";
  }
  xml += "</Blobs>" + (is_cut ? "<NextMarker>" + xml_escaped(last) + "</NextMarker>" : "<NextMarker />");
  return good(xml + "</EnumerationResults>");
}

}  // namespace tycho::testing
