// Both are asked directly, past every proxy.
#include "trainer/identities/aws_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/http/http_exchange.h"
#include "trainer/http/retry_wait.h"
#include "trainer/http/xml_text.h"
#include "trainer/identities/identity_request.h"

namespace tycho {
namespace {

constexpr double kContainer_s = 2;
/// A service that is in trouble gives credentials that have expired and are good all the same.
constexpr double kExtension_s = 15 * 60;

std::string host_of(const std::string& url) {
  std::string host = url.substr(url.find("://") + 3);
  host.resize(std::min(host.find_first_of("/?#"), host.size()));
  if (const size_t at = host.rfind('@'); at != std::string::npos) host.erase(0, at + 1);
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

std::vector<std::string> container_headers() {
  std::vector<std::string> headers = {"Accept: application/json"};
  std::string token;
  if (const std::string file = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
    token = read_secret_file(file);
  else
    token = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (token.empty()) return headers;
  register_secret(token);
  if (token.find_first_of("\r\n") != std::string::npos)
    fail(ExitCode::kUnusable,
         "[aws] the container's authorization token: expected one line, got several; is it the right file?");
  headers.push_back("Authorization: " + token);
  return headers;
}

double setting(const AwsProfiles& profiles, const char* variable, const char* key, double usual) {
  std::string text = environment_variable(variable);
  if (text.empty()) text = AwsProfiles::value(profiles.keys(profiles.chosen()), key);
  const double number = std::strtod(text.c_str(), nullptr);
  return number > 0 ? number : usual;
}

}  // namespace

Identity<AwsCredentials> credentials_in_json(const std::string& text, const std::string& source,
                                             const char* token) {
  const Json json = Json::parse(text, nullptr, false);
  const auto value = [&](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  Identity<AwsCredentials> identity{.value = {.key_id = value("AccessKeyId"),
                                              .secret = value("SecretAccessKey"),
                                              .session_token = value(token)}};
  for (const std::string& secret : {identity.value.secret, identity.value.session_token})
    register_secret(secret);
  const std::string expiration = value("Expiration");
  if (!expiration.empty()) identity.expires_s = store_time_s(expiration);
  if (identity.value.key_id.empty() || identity.value.secret.empty() || identity.expires_s == 0)
    fail(ExitCode::kUnusable,
         "[aws] {}: expected JSON with AccessKeyId, SecretAccessKey and Expiration, got {}", source,
         json.is_object() && !value("Message").empty() ? value("Message") : "something else");
  return identity;
}

std::string aws_container_url() {
  if (const std::string path = environment_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty())
    return "http://169.254.170.2" + path;
  std::string url = environment_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (url.empty() || url.starts_with("https://")) return url;
  const std::string host = url.starts_with("http://") ? host_of(url) : "";
  const bool is_known = host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23";
  if (!is_known && !is_loopback(host))
    fail(ExitCode::kUnusable,
         "[aws] AWS_CONTAINER_CREDENTIALS_FULL_URI: expected https://, this machine, 169.254.170.2, "
         "169.254.170.23 or [fd00:ec2::23], got {}",
         without_secrets(url));
  return url;
}

std::optional<Identity<AwsCredentials>> container_identity(const std::stop_token& stop) {
  const std::string url = aws_container_url();
  if (url.empty()) return {};
  const std::string source = "the container's credentials";
  const HttpAnswer answer = ask_identity(
      {.source = source,
       .call = {.url = url, .headers = container_headers(), .timeout_s = kContainer_s, .is_direct = true},
       .advice = "does the container's task or pod have a role?",
       .first_wait_s = 1},
      stop);
  return credentials_in_json(answer.body, source, "Token");
}

std::string aws_metadata_url(const AwsProfiles& profiles) {
  std::string disabled = environment_variable("AWS_EC2_METADATA_DISABLED");
  for (char& c : disabled) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (disabled == "true") return "";
  const AwsProfiles::Keys& keys = profiles.keys(profiles.chosen());
  std::string url = environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (url.empty()) url = AwsProfiles::value(keys, "ec2_metadata_service_endpoint");
  std::string mode = environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
  if (mode.empty()) mode = AwsProfiles::value(keys, "ec2_metadata_service_endpoint_mode");
  if (url.empty())
    url = mode == "ipv6" || mode == "IPv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::optional<Identity<AwsCredentials>> machine_identity(const AwsProfiles& profiles, std::string& lack,
                                                         const std::stop_token& stop) {
  const std::string url = aws_metadata_url(profiles);
  lack = "the metadata service is turned off by AWS_EC2_METADATA_DISABLED";
  if (url.empty()) return {};
  const double patience_s = setting(profiles, "AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout", 1);
  const double tries =
      setting(profiles, "AWS_METADATA_SERVICE_NUM_ATTEMPTS", "metadata_service_num_attempts", 1);
  HttpCall call{.method = "PUT",
                .url = url + "/latest/api/token",
                .headers = {"x-aws-ec2-metadata-token-ttl-seconds: 21600"},
                .timeout_s = patience_s,
                .is_direct = true};
  HttpAnswer token = http_exchange(call, stop);
  for (double number = 1; number < tries && token.status == 0 && wait_to_retry(patience_s / 2, stop);
       ++number)
    token = http_exchange(call, stop);
  if (stop.stop_requested()) fail(ExitCode::kTerminated, "[aws] stopped while asking for a token");
  lack = token.status == 0
             ? fmt::format("no metadata service ({}: {}; in a container, the machine's hop limit must be 2)",
                           url, token.problem)
             : fmt::format("the metadata service {} answers {}", url, token.status);
  if (token.status != 200 || token.body.empty()) return {};
  register_secret(token.body);
  // It is there, so it is asked for longer than a moment.
  IdentityRequest request{.source = "the role of this machine",
                          .call = {.url = url + "/latest/meta-data/iam/security-credentials/",
                                   .headers = {"x-aws-ec2-metadata-token: " + token.body},
                                   .timeout_s = std::max(5.0, patience_s),
                                   .is_direct = true},
                          .also = {404},
                          .advice = "does its metadata service allow this?"};
  const HttpAnswer role = ask_identity(request, stop);
  lack = "this machine has no role";
  const std::string name = role.body.substr(0, role.body.find_first_of("\r\n"));
  if (role.status == 404 || name.empty()) return {};
  request.call.url += name;
  const HttpAnswer answer = ask_identity(request, stop);
  if (answer.status == 404) return {};
  lack.clear();
  Identity<AwsCredentials> identity = credentials_in_json(answer.body, "the role " + name, "Token");
  if (identity.expires_s < unix_time_s() + kExtension_s)
    identity.expires_s = unix_time_s() + with_jitter(2 * kExtension_s);
  return identity;
}

}  // namespace tycho
