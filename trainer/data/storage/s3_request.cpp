// Addresses objects by path (a custom endpoint, a bucket with dots) or by host name (AWS).
#include "trainer/data/storage/s3_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/identities/aws_identity.h"
#include "trainer/identities/aws_profile.h"

namespace tycho {
namespace {

/// Returns the query in the order and the encoding that are signed.
std::string canonical_query(const S3Call& call) {
  const auto encoded = [](const std::string& text) {
    std::string out;
    for (const char c : percent_encoded(text)) out += c == '/' ? "%2F" : std::string(1, c);
    return out;
  };
  std::vector<std::string> pairs;
  for (const auto& [name, value] : call.query) pairs.push_back(encoded(name) + "=" + encoded(value));
  std::sort(pairs.begin(), pairs.end());
  return fmt::format("{}", fmt::join(pairs, "&"));
}

}  // namespace

std::string s3_key(const RemoteUri& place, const std::string& name) {
  return place.prefix.empty() ? name : place.prefix + "/" + name;
}

S3Request s3_request(const AwsSettings& settings, const RemoteUri& place, const S3Call& call,
                     const std::stop_token& stop) {
  const bool by_path = !settings.endpoint.empty() || place.bucket.find('.') != std::string::npos;
  std::string base = settings.endpoint, path;
  if (base.empty())
    base = fmt::format("https://{}s3.{}.{}", by_path ? "" : place.bucket + ".", settings.region,
                       aws_domain(settings.region));
  const size_t host = base.find("://") + 3, slash = base.find('/', host);
  const std::string host_name = base.substr(host, slash - host);
  if (slash != std::string::npos) path = base.substr(slash), base.resize(slash);
  if (by_path) path += "/" + place.bucket;
  if (!call.name.empty()) path += "/" + percent_encoded(s3_key(place, call.name));
  if (path.empty()) path = "/";
  const std::string query = canonical_query(call);
  S3Request request{base + path + (query.empty() ? "" : "?" + query), {}, {}};
  const AwsIdentity identity = settings.keys_only ? aws_keys() : aws_identity(stop);
  request.lack = identity.lack;
  if (!identity.credentials.key_id.empty())
    request.headers = signed_headers({.host = host_name,
                                      .path = path,
                                      .headers = call.headers,
                                      .region = settings.region,
                                      .time = signature_time(),
                                      .method = call.method,
                                      .query = query,
                                      .body_sha256 = call.body_sha256},
                                     identity.credentials);
  else
    for (const auto& [name, value] : call.headers) request.headers.push_back(name + ": " + value);
  return request;
}

}  // namespace tycho
