// One request for each kind of identity; the answers are alike.
#include "trainer/identities/azure_identity.h"

#include <cstdlib>
#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/http/http_exchange.h"
#include "trainer/identities/identity_request.h"
#include "trainer/identities/kept_identity.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

constexpr const char* kResource = "https://storage.azure.com";
constexpr double kProbe_s = 1, kAnswer_s = 30, kRenew_s = 300;

using Token = Identity<std::string>;  // "" where there is no identity

/// A request for a token.
struct TokenAsk {
  std::string source;  // for messages
  HttpCall call;
  bool is_machine = false;  // the metadata service, which is not everywhere
  bool is_probed = false;   // asked first whether it is there
};

/// Returns the request to Microsoft Entra for an application's token.
TokenAsk entra_ask(std::string source, const std::string& tenant, FormPairs form) {
  std::string host = first_environment_variable({"AZURE_AUTHORITY_HOST"});
  if (host.empty()) host = "https://login.microsoftonline.com";
  if (host.find("://") == std::string::npos) host = "https://" + host;
  while (host.ends_with('/')) host.pop_back();
  check_encrypted(host, "[azure] AZURE_AUTHORITY_HOST");
  form.emplace_back("scope", std::string(kResource) + "/.default");
  return {.source = std::move(source),
          .call = {.method = "POST",
                   .url = host + "/" + percent_encoded(tenant) + "/oauth2/v2.0/token",
                   .headers = {"Content-Type: application/x-www-form-urlencoded"},
                   .body = form_of(form),
                   .timeout_s = kAnswer_s}};
}

TokenAsk managed_ask(const std::string& client) {
  const std::string endpoint = environment_variable("IDENTITY_ENDPOINT");
  const std::string header = environment_variable("IDENTITY_HEADER");
  FormPairs query = {{"resource", kResource}};
  if (!client.empty()) query.emplace_back("client_id", client);
  if (!endpoint.empty() && !header.empty()) {
    register_secret(header);
    return {.source = "the managed identity of IDENTITY_ENDPOINT",
            .call = {.url = endpoint + "?api-version=2019-08-01&" + form_of(query),
                     .headers = {"X-IDENTITY-HEADER: " + header, "Metadata: true"},
                     .timeout_s = kAnswer_s,
                     .is_direct = true}};
  }
  std::string host = environment_variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
  const bool is_usual = host.empty();
  if (is_usual) host = "http://169.254.169.254";
  while (host.ends_with('/')) host.pop_back();
  return {.source = "the managed identity of this machine",
          .call = {.url = host + "/metadata/identity/oauth2/token?api-version=2018-02-01&" + form_of(query),
                   .headers = {"Metadata: true"},
                   .timeout_s = kAnswer_s,
                   .is_direct = true},
          .is_machine = true,
          .is_probed = is_usual};
}

/// Chooses the identity. The workload's token is read anew, since it is replaced while a job runs.
TokenAsk find_ask() {
  const std::string client = environment_variable("AZURE_CLIENT_ID");
  const std::string tenant = environment_variable("AZURE_TENANT_ID");
  const std::string secret = environment_variable("AZURE_CLIENT_SECRET");
  const std::string file = environment_variable("AZURE_FEDERATED_TOKEN_FILE");
  if (!client.empty() && !tenant.empty() && !secret.empty()) {
    register_secret(secret);
    return entra_ask(
        "AZURE_CLIENT_SECRET", tenant,
        {{"client_id", client}, {"client_secret", secret}, {"grant_type", "client_credentials"}});
  }
  if (!client.empty() && !tenant.empty() && !file.empty()) {
    const std::string assertion = read_secret_file(file);
    return entra_ask("AZURE_FEDERATED_TOKEN_FILE", tenant,
                     {{"client_id", client},
                      {"client_assertion", assertion},
                      {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
                      {"grant_type", "client_credentials"}});
  }
  return managed_ask(client);
}

/// Returns a number that is written as one or as a text; 0 for another value.
double number_in(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end()) return 0;
  return found->is_number()   ? found->get<double>()
         : found->is_string() ? std::strtod(found->get<std::string>().c_str(), nullptr)
                              : 0;
}

Token token_of(const TokenAsk& ask, const std::string& body) {
  const Json answer = parse_json(body, "azure");
  const auto text = answer.is_object() ? answer.find("access_token") : answer.end();
  if (!answer.is_object() || text == answer.end() || !text->is_string() || text->get<std::string>().empty())
    fail(ExitCode::kUnusable,
         "[azure] {}: expected an access_token, got an answer without one; ask your "
         "administrator about this identity",
         ask.source);
  const double lifetime_s = number_in(answer, "expires_in");
  Token token{.value = text->get<std::string>(),
              .expires_s = lifetime_s > 0 ? unix_time_s() + lifetime_s : number_in(answer, "expires_on")};
  register_secret(token.value);
  return token;
}

Token fetch(const TokenAsk& ask, const std::stop_token& stop) {
  if (ask.is_probed) {
    HttpCall probe = ask.call;
    probe.headers.clear();
    probe.timeout_s = kProbe_s;
    if (http_exchange(probe, stop).status == 0 && !stop.stop_requested()) return {};
  }
  IdentityRequest request{.place = "[azure]",
                          .source = ask.source,
                          .call = ask.call,
                          .advice = "correct the identity, or put a SAS into AZURE_STORAGE_SAS_TOKEN"};
  if (ask.is_machine) request.also = {400, 403}, request.also_passing = {404, 410};
  const HttpAnswer answer = ask_identity(request, stop);
  return answer.status == 200 ? token_of(ask, answer.body) : Token();
}

}  // namespace

std::string azure_token(const std::stop_token& stop) {
  static KeptIdentity<std::string> kept(kRenew_s);
  return kept.get(identity_owner({"AZURE_", "IDENTITY_"}), [&] { return fetch(find_ask(), stop); });
}

}  // namespace tycho
