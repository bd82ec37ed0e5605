// Profiles of the AWS command line: ~/.aws/config and ~/.aws/credentials.
#pragma once
#include <map>
#include <string>

namespace tycho {

/// Both files, read once.
class AwsProfiles {
 public:
  using Keys = std::map<std::string, std::string>;

  /// Reads AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, by default ~/.aws/credentials and ~/.aws/config.
  /// Throws Error (kUnusable) when the environment chooses a profile that does not exist.
  AwsProfiles();

  /// Returns the name of the profile of AWS_DEFAULT_PROFILE or AWS_PROFILE, else "default".
  const std::string& chosen() const { return chosen_; }
  bool has(const std::string& profile) const { return both_.contains(profile); }
  /// Returns the keys of a profile. Where both files have a key, that of the credentials counts.
  const Keys& keys(const std::string& profile) const { return found(both_, profile); }
  const Keys& keys_of_credentials(const std::string& profile) const { return found(credentials_, profile); }
  const Keys& keys_of_config(const std::string& profile) const { return found(config_, profile); }
  /// Returns the keys of [sso-session NAME].
  const Keys& sso_session(const std::string& name) const { return found(sessions_, name); }
  /// Returns the value of a key, "" without one.
  static std::string value(const Keys& keys, const char* name);

 private:
  using Sections = std::map<std::string, Keys>;
  static const Keys& found(const Sections& sections, const std::string& name);

  std::string chosen_;
  Sections credentials_, config_, both_, sessions_;
};

/// Returns AWS_REGION, AWS_DEFAULT_REGION, or the region of the chosen profile; "" without.
std::string aws_region(const AwsProfiles& profiles);

/// Returns the URL of a service, without a trailing "/": AWS_ENDPOINT_URL_STS for "sts", AWS_ENDPOINT_URL, or
/// the profile's endpoint_url, else AWS's own. Throws Error (kUnusable) when it is http:// on another
/// machine.
std::string aws_service_url(const AwsProfiles& profiles, const std::string& service,
                            const std::string& region);

/// Returns "amazonaws.com", or another ending of AWS's names in China.
std::string aws_domain(const std::string& region);

}  // namespace tycho
