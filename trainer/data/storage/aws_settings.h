// Region and endpoint of S3 as the AWS command line finds them.
#pragma once
#include <string>

#include "trainer/recipe/remote_uri.h"

namespace tycho {

struct AwsSettings {
  std::string region = "us-east-1";
  std::string endpoint;    // URL without a trailing "/"; "" for AWS itself
  std::string ca_file;     // AWS_CA_BUNDLE
  bool keys_only = false;  // credentials are aws_keys(), else aws_identity()
};

/// Reads the region: AWS_REGION, AWS_DEFAULT_REGION, the profile. Endpoint: S3_ENDPOINT_URL,
/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile. Throws Error (kUnusable) when AWS_PROFILE names a
/// profile that does not exist.
AwsSettings find_aws_settings();

/// Returns the settings for a place: gs:// has an endpoint of its own.
AwsSettings find_aws_settings(const RemoteUri& place);

}  // namespace tycho
