// Reads the environment and the two files of profiles.
#include "trainer/data/storage/aws_settings.h"

#include <unistd.h>

#include <map>
#include <sstream>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

using Profile = std::map<std::string, std::string>;

/// Adds the keys of [name] or [profile name]. Returns false when the file has neither.
bool read_profile(const std::string& path, const std::string& name, Profile& profile) {
  if (::access(path.c_str(), R_OK) != 0) return false;
  std::istringstream text(read_file(path));
  bool inside = false, found = false;
  for (std::string line; std::getline(text, line);) {
    const bool is_nested = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    line = trimmed(line);
    if (line.empty() || line[0] == '#' || line[0] == ';' || is_nested) continue;
    if (line[0] == '[') {
      inside = line == "[" + name + "]" || line == "[profile " + name + "]";
      found = found || inside;
    } else if (const size_t equals = line.find('='); inside && equals != std::string::npos) {
      profile.emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
    }
  }
  return found;
}

Profile find_profile() {
  const std::string folder = first_environment_variable({"HOME"}) + "/.aws/";
  std::string credentials = first_environment_variable({"AWS_SHARED_CREDENTIALS_FILE"});
  std::string config = first_environment_variable({"AWS_CONFIG_FILE"});
  if (credentials.empty()) credentials = folder + "credentials";
  if (config.empty()) config = folder + "config";
  const std::string wanted = first_environment_variable({"AWS_PROFILE"});
  Profile profile;
  const bool here = read_profile(credentials, wanted.empty() ? "default" : wanted, profile);
  const bool there = read_profile(config, wanted.empty() ? "default" : wanted, profile);
  if (!here && !there && !wanted.empty())
    fail(ExitCode::kUnusable, "[data] AWS_PROFILE is {}, but neither {} nor {} has that profile", wanted,
         credentials, config);
  return profile;
}

}  // namespace

AwsSettings find_aws_settings() {
  Profile profile = find_profile();
  AwsSettings settings;
  AwsCredentials& keys = settings.credentials;
  keys = {first_environment_variable({"AWS_ACCESS_KEY_ID"}),
          first_environment_variable({"AWS_SECRET_ACCESS_KEY"}),
          first_environment_variable({"AWS_SESSION_TOKEN"})};
  std::string source = "the environment";
  if (keys.key_id.empty() && keys.secret.empty()) {
    source = "the AWS profile";
    keys = {profile["aws_access_key_id"], profile["aws_secret_access_key"], profile["aws_session_token"]};
  }
  if (keys.key_id.empty() != keys.secret.empty())
    fail(ExitCode::kUnusable, "[data] {} has {} of an AWS key without the other half", source,
         keys.secret.empty() ? "the id" : "the secret");
  for (const std::string& secret : {keys.secret, keys.session_token}) register_secret(secret);
  std::string region = first_environment_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = profile["region"];
  if (!region.empty()) settings.region = region;
  settings.endpoint =
      first_environment_variable({"S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (settings.endpoint.empty()) settings.endpoint = profile["endpoint_url"];
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.empty() && !settings.endpoint.starts_with("http://") &&
      !settings.endpoint.starts_with("https://"))
    fail(ExitCode::kUnusable, "[data] the S3 endpoint {} is not a URL: write https://HOST",
         without_secrets(settings.endpoint));
  settings.ca_file = first_environment_variable({"AWS_CA_BUNDLE"});
  return settings;
}

AwsSettings find_aws_settings(const RemoteUri& place) {
  AwsSettings settings = find_aws_settings();
  if (!place.endpoint.empty()) settings.endpoint = place.endpoint;
  return settings;
}

}  // namespace tycho
