// Reads the environment and the profile.
#include "trainer/data/storage/aws_settings.h"

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/identities/aws_profile.h"

namespace tycho {

AwsSettings find_aws_settings() {
  const AwsProfiles profiles;
  AwsSettings settings;
  if (const std::string region = aws_region(profiles); !region.empty()) settings.region = region;
  settings.endpoint =
      first_environment_variable({"S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (settings.endpoint.empty())
    settings.endpoint = AwsProfiles::value(profiles.keys(profiles.chosen()), "endpoint_url");
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.empty() && !settings.endpoint.starts_with("http://") &&
      !settings.endpoint.starts_with("https://"))
    fail(ExitCode::kUnusable, "[data] the S3 endpoint {} is not a URL: write https://HOST",
         without_secrets(settings.endpoint));
  settings.ca_file = environment_variable("AWS_CA_BUNDLE");
  return settings;
}

AwsSettings find_aws_settings(const RemoteUri& place) {
  AwsSettings settings = find_aws_settings();
  if (!place.endpoint.empty()) settings.endpoint = place.endpoint, settings.keys_only = true;
  return settings;
}

}  // namespace tycho
