// The file of a login is named by the SHA-1 of its session's name, or of its start page.
#include "trainer/identities/aws_sso.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hmac.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/http/xml_text.h"
#include "trainer/identities/identity_request.h"

namespace tycho {
namespace {

constexpr double kRenewLogin_s = 15 * 60;

struct SsoProfile {
  std::string profile, session;  // no session: an old kind of login, which is not renewed
  std::string start_url, region, account_id, role;
};

std::string utc_text(double time_s) {
  const auto whole = static_cast<std::time_t>(time_s);
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string sha1_hex(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return hex(std::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

SsoProfile read_profile(const AwsProfiles& profiles, const std::string& profile) {
  AwsProfiles::Keys keys = profiles.keys(profile);
  const std::string session = AwsProfiles::value(keys, "sso_session");
  const AwsProfiles::Keys& shared = profiles.sso_session(session);
  if (!session.empty() && shared.empty())
    fail(ExitCode::kUnusable, "[aws] the profile {}: expected [sso-session {}] in ~/.aws/config, got none",
         profile, session);
  keys.insert(shared.begin(), shared.end());
  for (const char* name : {"sso_start_url", "sso_region", "sso_account_id", "sso_role_name"})
    if (AwsProfiles::value(keys, name).empty())
      fail(ExitCode::kUnusable,
           "[aws] the profile {}: expected {}, which a login by SSO needs; run "
           "`aws configure sso`",
           profile, name);
  return {.profile = profile,
          .session = session,
          .start_url = AwsProfiles::value(keys, "sso_start_url"),
          .region = AwsProfiles::value(keys, "sso_region"),
          .account_id = AwsProfiles::value(keys, "sso_account_id"),
          .role = AwsProfiles::value(keys, "sso_role_name")};
}

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

[[noreturn]] void fail_login(const SsoProfile& sso, const std::string& problem) {
  fail(ExitCode::kUnusable,
       "[aws] the profile {}: expected a login by SSO, got {}; run `aws sso login "
       "--profile {}`",
       sso.profile, problem, sso.profile);
}

/// Asks for a new token of a login. Returns false when there is none; the present one may still be good.
bool renew(const AwsProfiles& profiles, const SsoProfile& sso, Json& login, const std::stop_token& stop) {
  for (const char* name : {"refreshToken", "clientId", "clientSecret"}) {
    if (text_in(login, name).empty()) return false;
    register_secret(text_in(login, name));
  }
  if (store_time_s(text_in(login, "registrationExpiresAt")) <= unix_time_s()) return false;
  Json body = {{"grantType", "refresh_token"},
               {"clientId", login["clientId"]},
               {"clientSecret", login["clientSecret"]},
               {"refreshToken", login["refreshToken"]}};
  const HttpAnswer answer =
      ask_identity({.source = "the profile " + sso.profile,
                    .call = {.method = "POST",
                             .url = aws_service_url(profiles, "sso_oidc", sso.region) + "/token",
                             .headers = {"Content-Type: application/json"},
                             .body = body.dump(),
                             .ca_file = environment_variable("AWS_CA_BUNDLE")},
                    .also = {400, 401, 403}},
                   stop);
  if (answer.status != 200) return false;
  const Json renewed = parse_json(answer.body, "aws");
  if (!renewed.is_object() || text_in(renewed, "accessToken").empty()) return false;
  for (const char* name : {"accessToken", "refreshToken"})
    if (const std::string text = text_in(renewed, name); !text.empty()) {
      register_secret(text);
      login[name] = text;
    }
  login["startUrl"] = sso.start_url, login["region"] = sso.region;
  login["expiresAt"] = utc_text(unix_time_s() + renewed.value("expiresIn", 0.0));
  return true;
}

/// Returns the token of the login.
std::string find_token(const AwsProfiles& profiles, const SsoProfile& sso, const std::stop_token& stop) {
  const std::string path = environment_variable("HOME") + "/.aws/sso/cache/" +
                           sha1_hex(sso.session.empty() ? sso.start_url : sso.session) + ".json";
  if (::access(path.c_str(), R_OK) != 0) fail_login(sso, "no " + path);
  Json login = parse_json(read_file(path), path);
  if (!login.is_object() || text_in(login, "accessToken").empty())
    fail_login(sso, "no accessToken in " + path);
  register_secret(text_in(login, "accessToken"));
  const double left_s = store_time_s(text_in(login, "expiresAt")) - unix_time_s();
  if (!sso.session.empty() && left_s < kRenewLogin_s && renew(profiles, sso, login, stop)) {
    if (::access(path.c_str(), W_OK) == 0)
      write_file_atomically(real_files(), path, login.dump(), Readers::kOwner);
  } else if (left_s <= 0) {
    fail_login(sso, "one that has expired");
  }
  return text_in(login, "accessToken");
}

}  // namespace

std::optional<Identity<AwsCredentials>> sso_identity(const AwsProfiles& profiles, const std::string& profile,
                                                     const std::stop_token& stop) {
  const AwsProfiles::Keys& keys = profiles.keys(profile);
  if (AwsProfiles::value(keys, "sso_role_name").empty() && AwsProfiles::value(keys, "sso_account_id").empty())
    return {};
  const SsoProfile sso = read_profile(profiles, profile);
  const std::string token = find_token(profiles, sso, stop);
  const HttpAnswer answer = ask_identity(
      {.source = "the profile " + profile,
       .call = {.url = aws_service_url(profiles, "sso", sso.region) + "/federation/credentials?" +
                       form_of({{"role_name", sso.role}, {"account_id", sso.account_id}}),
                .headers = {"x-amz-sso_bearer_token: " + token},
                .ca_file = environment_variable("AWS_CA_BUNDLE")},
       .also = {401},
       .advice = "correct sso_account_id and sso_role_name, or ask for that role"},
      stop);
  if (answer.status == 401) fail_login(sso, "one that has expired");
  const Json found = parse_json(answer.body, "aws");
  const Json role = found.is_object() ? found.value("roleCredentials", Json::object()) : Json::object();
  Identity<AwsCredentials> identity{.value = {.key_id = text_in(role, "accessKeyId"),
                                              .secret = text_in(role, "secretAccessKey"),
                                              .session_token = text_in(role, "sessionToken")},
                                    .expires_s = role.value("expiration", 0.0) / 1000};
  if (identity.value.key_id.empty() || identity.value.secret.empty())
    fail(ExitCode::kUnusable,
         "[aws] the profile {}: expected roleCredentials, got an answer without; run `aws "
         "sso login --profile {}`",
         profile, profile);
  for (const std::string& secret : {identity.value.secret, identity.value.session_token})
    register_secret(secret);
  return identity;
}

}  // namespace tycho
