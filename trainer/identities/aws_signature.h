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
  std::string path;  // percent-encoded, with a leading "/"
  std::vector<std::pair<std::string, std::string>>
      headers;  // headers to sign in addition to the host; names in lower case
  std::string region, service = "s3";
  std::string time;  // "20130524T000000Z"
  std::string method = "GET";
  std::string body = {};
  std::string query = {};        // encoded and sorted, without "?"
  std::string body_sha256 = {};  // in hex, in place of the body
};

/// Returns the present time as a signature has it.
std::string signature_time();

/// Returns the headers to send, "Name: value": the given ones, the signature's own and Authorization. Source:
/// AWS, "Signature Version 4 signing process".
std::vector<std::string> signed_headers(const AwsRequest& request, const AwsCredentials& credentials);

}  // namespace tycho
