// Credentials, region and endpoint as the AWS command line finds them.
#pragma once
#include <string>

#include "trainer/data/storage/aws_signature.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {

struct AwsSettings {
  AwsCredentials credentials;  // empty: requests are not signed
  std::string region = "us-east-1";
  std::string endpoint;  // URL without a trailing "/"; "" for AWS itself
  std::string ca_file;   // AWS_CA_BUNDLE
};

/// Reads credentials from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; else from the
/// profile AWS_PROFILE of ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE,
/// AWS_CONFIG_FILE). Region: AWS_REGION, AWS_DEFAULT_REGION, the profile. Endpoint: S3_ENDPOINT_URL,
/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile. The secrets are masked from then on. Throws Error
/// (kUnusable) when AWS_PROFILE names a profile that does not exist or half of a key is missing.
AwsSettings find_aws_settings();

/// Returns the settings for a place: gs:// has an endpoint of its own.
AwsSettings find_aws_settings(const RemoteUri& place);

}  // namespace tycho
