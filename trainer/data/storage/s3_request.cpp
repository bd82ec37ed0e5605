// Addresses objects by path (a custom endpoint, a bucket with dots) or by host name (AWS).
#include "trainer/data/storage/s3_request.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>

namespace tycho {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

}  // namespace

S3Request s3_request(const AwsSettings& settings, const RemoteUri& place, const std::string& name,
                     const std::string& method, const std::string& body) {
  const bool by_path = !settings.endpoint.empty() || place.bucket.find('.') != std::string::npos;
  std::string base = settings.endpoint, path;
  if (base.empty())
    base = fmt::format("https://{}s3.{}.amazonaws.com", by_path ? "" : place.bucket + ".", settings.region);
  const size_t host = base.find("://") + 3, slash = base.find('/', host);
  const std::string host_name = base.substr(host, slash - host);
  if (slash != std::string::npos) path = base.substr(slash), base.resize(slash);
  if (by_path) path += "/" + place.bucket;
  if (!place.prefix.empty()) path += "/" + percent_encoded(place.prefix);
  path += "/" + percent_encoded(name);
  S3Request request{base + path, {}};
  if (!settings.credentials.key_id.empty())
    request.headers = signed_headers({host_name, path, {}, settings.region, "s3", utc_now(), method, body},
                                     settings.credentials);
  return request;
}

}  // namespace tycho
