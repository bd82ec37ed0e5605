// A request to S3 or to a store that speaks its protocol: its URL, and its signature.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/storage/aws_settings.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

struct S3Request {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"; none without credentials
};

/// Makes a request for `name` below the place, signed with the current time. `body` belongs to a PUT.
S3Request s3_request(const AwsSettings& settings, const RemoteUri& place, const std::string& name,
                     const std::string& method = "GET", const std::string& body = "");

}  // namespace tycho
