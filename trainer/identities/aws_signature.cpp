// The canonical request, the text to sign, and the chain of keys.
#include "trainer/identities/aws_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "trainer/base/hmac.h"

namespace tycho {

std::string signature_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

std::vector<std::string> signed_headers(const AwsRequest& request, const AwsCredentials& credentials) {
  const std::string body_hash = request.body_sha256.empty() ? hex(sha256(request.body)) : request.body_sha256;
  auto headers = request.headers;
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", request.time);
  if (!credentials.session_token.empty())
    headers.emplace_back("x-amz-security-token", credentials.session_token);
  std::vector<std::string> lines;
  for (const auto& [name, value] : headers) lines.push_back(name + ": " + value);
  headers.emplace_back("host", request.host);  // sent by libcurl
  std::sort(headers.begin(), headers.end());
  std::string canonical = request.method + "\n" + request.path + "\n" + request.query + "\n", names;
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  canonical += "\n" + names + "\n" + body_hash;

  const std::string day = request.time.substr(0, 8);
  const std::string scope = day + "/" + request.region + "/" + request.service + "/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + request.time + "\n" + scope + "\n" + hex(sha256(canonical));
  std::string key = hmac_sha256("AWS4" + credentials.secret, day);
  for (const std::string& part : {request.region, request.service, std::string("aws4_request")})
    key = hmac_sha256(key, part);
  lines.push_back(
      fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                  credentials.key_id, scope, names, hex(hmac_sha256(key, to_sign))));
  return lines;
}

}  // namespace tycho
