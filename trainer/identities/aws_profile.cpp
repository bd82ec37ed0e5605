// Reads the two files of profiles; settings of single services, which are indented, are left out.
#include "trainer/identities/aws_profile.h"

#include <unistd.h>

#include <cctype>
#include <sstream>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/identities/identity_request.h"

namespace tycho {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::string file_of(const char* variable, const char* usual) {
  std::string path = environment_variable(variable);
  if (path.empty()) path = usual;
  return path.starts_with("~/") ? environment_variable("HOME") + path.substr(1) : path;
}

/// Returns the keys of each section, by the text in the brackets.
std::map<std::string, AwsProfiles::Keys> read_sections(const std::string& path) {
  std::map<std::string, AwsProfiles::Keys> sections;
  if (::access(path.c_str(), R_OK) != 0) return sections;
  std::istringstream text(read_file(path));
  AwsProfiles::Keys* keys = nullptr;
  for (std::string line; std::getline(text, line);) {
    const bool is_nested = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    line = trimmed(line);
    if (line.empty() || line[0] == '#' || line[0] == ';' || is_nested) continue;
    if (line[0] == '[')
      keys = &sections[trimmed(line.substr(1, line.find(']') - 1))];
    else if (const size_t equals = line.find('='); keys != nullptr && equals != std::string::npos)
      keys->emplace(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }
  return sections;
}

}  // namespace

AwsProfiles::AwsProfiles() {
  const std::string credentials = file_of("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials");
  const std::string config = file_of("AWS_CONFIG_FILE", "~/.aws/config");
  const auto name_in = [](const std::string& title, const std::string& kind) {
    return title.starts_with(kind + " ") ? trimmed(title.substr(kind.size())) : std::string();
  };
  for (const auto& [title, keys] : read_sections(credentials)) credentials_[title] = keys;
  for (const auto& [title, keys] : read_sections(config)) {
    if (const std::string session = name_in(title, "sso-session"); !session.empty()) {
      sessions_[session] = keys;
    } else {
      const std::string profile = name_in(title, "profile");
      config_[profile.empty() ? title : profile].insert(keys.begin(), keys.end());
    }
  }
  both_ = credentials_;
  for (const auto& [name, keys] : config_) both_[name].insert(keys.begin(), keys.end());
  const std::string wanted = first_environment_variable({"AWS_DEFAULT_PROFILE", "AWS_PROFILE"});
  chosen_ = wanted.empty() ? "default" : wanted;
  if (!wanted.empty() && !has(wanted))
    fail(ExitCode::kUnusable, "[data] {} is {}, but neither {} nor {} has that profile",
         environment_variable("AWS_DEFAULT_PROFILE").empty() ? "AWS_PROFILE" : "AWS_DEFAULT_PROFILE", wanted,
         credentials, config);
}

const AwsProfiles::Keys& AwsProfiles::found(const Sections& sections, const std::string& name) {
  static const Keys kNone;
  const auto section = sections.find(name);
  return section == sections.end() ? kNone : section->second;
}

std::string AwsProfiles::value(const Keys& keys, const char* name) {
  const auto key = keys.find(name);
  return key == keys.end() ? "" : key->second;
}

std::string aws_region(const AwsProfiles& profiles) {
  const std::string region = first_environment_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  return region.empty() ? AwsProfiles::value(profiles.keys(profiles.chosen()), "region") : region;
}

std::string aws_domain(const std::string& region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

std::string aws_service_url(const AwsProfiles& profiles, const std::string& service,
                            const std::string& region) {
  std::string variable = "AWS_ENDPOINT_URL_";
  for (const char c : service) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string url = first_environment_variable({variable.c_str(), "AWS_ENDPOINT_URL"});
  if (url.empty()) url = AwsProfiles::value(profiles.keys(profiles.chosen()), "endpoint_url");
  while (url.ends_with('/')) url.pop_back();
  if (!url.empty()) {
    check_encrypted(url, "[aws] " + variable);
    return url;
  }
  const std::string host = service == "sso" ? "portal.sso" : service == "sso_oidc" ? "oidc" : service;
  return "https://" + host + "." + region + "." + aws_domain(region);
}

}  // namespace tycho
