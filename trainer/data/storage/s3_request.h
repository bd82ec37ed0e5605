// A request to S3 or to a store that speaks its protocol: its URL, and its signature.
#pragma once
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/storage/aws_settings.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

/// A request before it is signed.
struct S3Call {
  std::string method = "GET";
  std::string name;  // of an object below the place; "" for the bucket itself
  std::vector<std::pair<std::string, std::string>> query = {}, headers = {};  // headers in lower case
  std::string body_sha256 = {};                                               // in hex; "" without a body
};

struct S3Request {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"; without credentials, those of the call alone
  std::string lack;                  // why there are no credentials; "" with some
};

/// Returns the request, signed with the current time and credentials that are still good. Throws Error as
/// aws_identity() does.
S3Request s3_request(const AwsSettings& settings, const RemoteUri& place, const S3Call& call,
                     const std::stop_token& stop);

/// Returns the key in the bucket of the object `name` below the place.
std::string s3_key(const RemoteUri& place, const std::string& name);

}  // namespace tycho
