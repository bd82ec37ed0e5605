// The service takes forms and answers in XML.
#include "trainer/identities/aws_sts.h"

#include <fmt/format.h>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/http/xml_text.h"
#include "trainer/identities/identity_request.h"

namespace tycho {
namespace {

constexpr const char* kUsualRegion = "us-east-1";
constexpr const char* kForm = "application/x-www-form-urlencoded; charset=utf-8";

Identity<AwsCredentials> credentials_in(const std::string& xml, const std::string& source) {
  Identity<AwsCredentials> found{.value = {.key_id = xml_value(xml, "AccessKeyId"),
                                           .secret = xml_value(xml, "SecretAccessKey"),
                                           .session_token = xml_value(xml, "SessionToken")},
                                 .expires_s = store_time_s(xml_value(xml, "Expiration"))};
  if (found.value.key_id.empty() || found.value.secret.empty() || found.expires_s == 0)
    fail(ExitCode::kUnusable, "[aws] {}: expected Credentials of STS, got an answer without; is {} right?",
         source, "AWS_ENDPOINT_URL_STS");
  for (const std::string& secret : {found.value.secret, found.value.session_token}) register_secret(secret);
  return found;
}

Identity<AwsCredentials> ask_sts(const AwsProfiles& profiles, const AwsRole& role, FormPairs form,
                                 const AwsCredentials* by, const std::stop_token& stop) {
  std::string region = aws_region(profiles);
  if (region.empty()) region = kUsualRegion;
  const std::string url = aws_service_url(profiles, "sts", region);
  form.emplace_back("Version", "2011-06-15");
  form.emplace_back("RoleArn", role.arn);
  form.emplace_back("RoleSessionName", role.session_name.empty() ? fmt::format("tycho-{:.0f}", unix_time_s())
                                                                 : role.session_name);
  if (!role.external_id.empty()) form.emplace_back("ExternalId", role.external_id);
  if (!role.duration_s.empty()) form.emplace_back("DurationSeconds", role.duration_s);
  const std::string body = form_of(form);
  std::vector<std::string> headers = {std::string("Content-Type: ") + kForm};
  if (by != nullptr)
    headers = signed_headers({.host = url.substr(url.find("://") + 3),
                              .path = "/",
                              .headers = {{"content-type", kForm}},
                              .region = region,
                              .service = "sts",
                              .time = signature_time(),
                              .method = "POST",
                              .body = body},
                             *by);
  const HttpAnswer answer = ask_identity({.source = role.source,
                                          .call = {.method = "POST",
                                                   .url = url + "/",
                                                   .headers = headers,
                                                   .body = body,
                                                   .ca_file = environment_variable("AWS_CA_BUNDLE")},
                                          .advice = "correct the role's name, or its trust in this identity"},
                                         stop);
  return credentials_in(answer.body, role.source);
}

}  // namespace

Identity<AwsCredentials> assume_role_by_token(const AwsProfiles& profiles, const AwsRole& role,
                                              const std::string& token_file, const std::stop_token& stop) {
  if (role.arn.empty())
    fail(ExitCode::kUnusable,
         "[aws] {}: expected a role, got none; set AWS_ROLE_ARN, or role_arn of the profile", role.source);
  return ask_sts(
      profiles, role,
      {{"Action", "AssumeRoleWithWebIdentity"}, {"WebIdentityToken", read_secret_file(token_file)}}, nullptr,
      stop);
}

Identity<AwsCredentials> assume_role(const AwsProfiles& profiles, const AwsRole& role,
                                     const AwsCredentials& by, const std::stop_token& stop) {
  return ask_sts(profiles, role, {{"Action", "AssumeRole"}}, &by, stop);
}

}  // namespace tycho
