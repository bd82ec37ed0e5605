// Order of sources: create_credential_resolver of botocore 1.44.
#include "trainer/identities/aws_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/identities/aws_machine.h"
#include "trainer/identities/aws_profile.h"
#include "trainer/identities/aws_sso.h"
#include "trainer/identities/aws_sts.h"
#include "trainer/identities/credential_process.h"
#include "trainer/identities/identity_request.h"
#include "trainer/identities/kept_identity.h"

namespace tycho {
namespace {

constexpr double kEarly_s = 15 * 60;

using Found = std::optional<Identity<AwsCredentials>>;
using Keys = AwsProfiles::Keys;

/// Returns a pair of keys; nullopt without one. Throws Error for half of one.
Found whole_pair(const std::string& source, const AwsCredentials& keys) {
  if (keys.key_id.empty() && keys.secret.empty()) return {};
  if (keys.key_id.empty() || keys.secret.empty())
    fail(ExitCode::kUnusable, "[data] {} has {} of an AWS key without the other half", source,
         keys.secret.empty() ? "the id" : "the secret");
  for (const std::string& secret : {keys.secret, keys.session_token}) register_secret(secret);
  return Identity<AwsCredentials>{.value = keys};
}

Found environment_keys() {
  return whole_pair("the environment",
                    {environment_variable("AWS_ACCESS_KEY_ID"), environment_variable("AWS_SECRET_ACCESS_KEY"),
                     first_environment_variable({"AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"})});
}

Found profile_keys(const Keys& keys) {
  std::string token = AwsProfiles::value(keys, "aws_security_token");
  if (token.empty()) token = AwsProfiles::value(keys, "aws_session_token");
  return whole_pair("the AWS profile", {AwsProfiles::value(keys, "aws_access_key_id"),
                                        AwsProfiles::value(keys, "aws_secret_access_key"), token});
}

/// Looks in the profiles.
class ProfileSearch {
 public:
  ProfileSearch(const AwsProfiles& profiles, const std::stop_token& stop)
      : profiles_(profiles), stop_(stop) {}

  Found chosen() {
    const std::string& name = profiles_.chosen();
    return has_role(name) ? by_role(name) : without_role(name, true);
  }

 private:
  std::string value(const std::string& profile, const char* key) const {
    return AwsProfiles::value(profiles_.keys(profile), key);
  }
  bool has_role(const std::string& profile) const {
    return !value(profile, "role_arn").empty() && value(profile, "web_identity_token_file").empty();
  }

  /// Searches all of a profile but the role that it takes on.
  Found without_role(const std::string& name, bool with_environment) const {
    if (Found found = by_token(name, with_environment)) return found;
    if (Found found = sso_identity(profiles_, name, stop_)) return found;
    if (Found found = profile_keys(profiles_.keys_of_credentials(name))) return found;
    if (!value(name, "login_session").empty())
      fail(ExitCode::kUnusable,
           "[aws] the profile {}: the login of `aws login` (login_session) is not supported; write "
           "credential_process = aws configure export-credentials --profile {} into another profile",
           name, name);
    if (const std::string command = value(name, "credential_process"); !command.empty())
      return by_command(command);
    return profile_keys(profiles_.keys_of_config(name));
  }

  Found by_token(const std::string& name, bool with_environment) const {
    const auto setting = [&](const char* variable, const char* key) {
      const std::string text = with_environment ? environment_variable(variable) : "";
      return text.empty() ? value(name, key) : text;
    };
    const std::string file = setting("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
    if (file.empty()) return {};
    return assume_role_by_token(profiles_,
                                {.source = "the web identity",
                                 .arn = setting("AWS_ROLE_ARN", "role_arn"),
                                 .session_name = setting("AWS_ROLE_SESSION_NAME", "role_session_name")},
                                file, stop_);
  }

  Found by_command(const std::string& command) const {
    const std::string text = output_of(command, stop_);
    const std::string source = "credential_process";
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_object() && json.value("Version", 0) != 1)
      fail(ExitCode::kUnusable, "[aws] credential_process: expected \"Version\": 1, got another or none");
    return credentials_in_json(text, source, "SessionToken");
  }

  Found by_role(const std::string& name) {
    visited_.push_back(name);
    if (!value(name, "mfa_serial").empty())
      fail(ExitCode::kUnusable,
           "[aws] the profile {}: mfa_serial needs a person at each renewal and is not supported; put the "
           "role's credentials into the environment, as `aws configure export-credentials` prints them",
           name);
    const Found by = source_of(name);
    if (!by)
      fail(ExitCode::kUnusable, "[aws] the profile {}: expected credentials of its source, got none", name);
    return assume_role(profiles_,
                       {.source = "the profile " + name,
                        .arn = value(name, "role_arn"),
                        .session_name = value(name, "role_session_name"),
                        .external_id = value(name, "external_id"),
                        .duration_s = value(name, "duration_seconds")},
                       by->value, stop_);
  }

  /// Returns the credentials by which a profile takes on its role.
  Found source_of(const std::string& name) {
    const std::string source = value(name, "source_profile"), kind = value(name, "credential_source");
    if (source.empty() == kind.empty())
      fail(ExitCode::kUnusable,
           "[aws] the profile {} has role_arn: expected either source_profile or credential_source, got {}",
           name, source.empty() ? "neither" : "both");
    std::string lack;
    if (kind == "Environment") return environment_keys();
    if (kind == "EcsContainer") return container_identity(stop_);
    if (kind == "Ec2InstanceMetadata") return machine_identity(profiles_, lack, stop_);
    if (!kind.empty())
      fail(ExitCode::kUnusable,
           "[aws] the profile {}: expected credential_source Environment, EcsContainer or "
           "Ec2InstanceMetadata, "
           "got {}",
           name, kind);
    if (!profiles_.has(source))
      fail(ExitCode::kUnusable, "[aws] the profile {}: its source_profile {} does not exist", name, source);
    const bool has_keys =
        !value(source, "aws_access_key_id").empty() || !value(source, "aws_secret_access_key").empty();
    if (has_keys || !has_role(source)) return without_role(source, false);
    if (std::find(visited_.begin(), visited_.end(), source) != visited_.end())
      fail(ExitCode::kUnusable, "[aws] the profile {}: its source_profile {} leads back to itself", name,
           source);
    return by_role(source);
  }

  const AwsProfiles& profiles_;
  const std::stop_token& stop_;
  std::vector<std::string> visited_;
};

Identity<AwsIdentity> search(const std::stop_token& stop) {
  const AwsProfiles profiles;
  Found found = environment_keys();
  if (!found) found = ProfileSearch(profiles, stop).chosen();
  if (!found) found = container_identity(stop);
  std::string lack;
  if (!found) found = machine_identity(profiles, lack, stop);
  if (found) return {.value = {.credentials = found->value, .lack = ""}, .expires_s = found->expires_s};
  return {
      .value = {.credentials = {},
                .lack = fmt::format("neither AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE, the AWS profile "
                                    "{} nor a container has credentials, and {}",
                                    profiles.chosen(), lack)}};
}

}  // namespace

AwsIdentity aws_identity(const std::stop_token& stop) {
  static KeptIdentity<AwsIdentity> kept(kEarly_s);
  return kept.get(identity_owner({"AWS_", "HOME="}), [&] { return search(stop); });
}

AwsIdentity aws_keys() {
  const AwsProfiles profiles;
  Found found = environment_keys();
  for (const Keys* keys :
       {&profiles.keys_of_credentials(profiles.chosen()), &profiles.keys_of_config(profiles.chosen())})
    if (!found) found = profile_keys(*keys);
  if (found) return {.credentials = found->value, .lack = ""};
  return {.credentials = {}, .lack = "neither AWS_ACCESS_KEY_ID nor an AWS profile has credentials"};
}

}  // namespace tycho
