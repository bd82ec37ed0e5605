// AWS Signature Version 4.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

struct AwsCredentials {
  std::string key_id, secret;  // both "" for requests that are not signed
  std::string session_token;   // "" for keys that do not expire
};

struct AwsRequest {
  std::string host;  // with its port, where the URL has one
  std::string path;  // percent-encoded, with "/" in front
  std::vector<std::pair<std::string, std::string>>
      headers;  // to be signed beside the host; names in lower case
  std::string region, service = "s3";
  std::string time;  // "20130524T000000Z"
  std::string method = "GET";
  std::string body = {};
};

/// The headers to send, "Name: value": those given, the signature's own and Authorization. Source: AWS,
/// "Signature Version 4 signing process".
std::vector<std::string> signed_headers(const AwsRequest& request, const AwsCredentials& credentials);

}  // namespace tycho
