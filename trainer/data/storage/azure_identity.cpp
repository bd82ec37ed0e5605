// One request for each kind of identity; the answers are alike.
#include "trainer/data/storage/azure_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/http/answer_line.h"
#include "trainer/http/http_exchange.h"
#include "trainer/http/retry_wait.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

constexpr const char* kResource = "https://storage.azure.com";
constexpr int kTries = 5;
constexpr double kProbe_s = 1, kAnswer_s = 30, kRenew_s = 300, kBetweenRenewals_s = 30;

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Token {
  std::string text;
  double expires_s = 0, renew_s = 0;  // since 1970
};

/// A request for a token.
struct TokenAsk {
  std::string source;  // for messages
  HttpCall call;
  bool is_machine = false;  // the metadata service, which is not everywhere
  bool is_probed = false;   // asked first whether it is there
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string form_of(const Pairs& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs)
    text += (text.empty() ? "" : "&") + name + "=" + percent_encoded(value);
  return text;
}

/// Returns the request to Microsoft Entra for an application's token.
TokenAsk entra_ask(std::string source, const std::string& tenant, Pairs form) {
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
  Pairs query = {{"resource", kResource}};
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
    std::string assertion = read_file(file);
    while (!assertion.empty() && assertion.back() <= ' ') assertion.pop_back();
    register_secret(assertion);
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
  Token token{.text = text->get<std::string>()};
  register_secret(token.text);
  const double now = now_s(), lifetime_s = number_in(answer, "expires_in");
  token.expires_s = lifetime_s > 0 ? now + lifetime_s : number_in(answer, "expires_on");
  token.renew_s = token.expires_s - std::min(kRenew_s, std::max(0.0, token.expires_s - now) / 2);
  return token;
}

std::string said(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.problem;
  std::string text;
  if (const Json json = Json::parse(answer.body, nullptr, false); json.is_object())
    for (const char* name : {"error_description", "error", "Message", "message"})
      if (const auto found = json.find(name); text.empty() && found != json.end() && found->is_string())
        text = found->get<std::string>();
  return fmt::format("{} ({})", answer.status, answer_line(text.empty() ? answer.body : text));
}

/// Returns nullopt when the machine has no identity.
std::optional<Token> fetch(const TokenAsk& ask, const std::stop_token& stop) {
  if (ask.is_probed) {
    HttpCall probe = ask.call;
    probe.headers.clear();
    probe.timeout_s = kProbe_s;
    if (http_exchange(probe, stop).status == 0 && !stop.stop_requested()) return {};
  }
  double wait_s = 0.8;
  for (int number = 1;; ++number, wait_s *= 2) {
    const HttpAnswer answer = http_exchange(ask.call, stop);
    if (stop.stop_requested()) fail(ExitCode::kTerminated, "[azure] stopped while asking for a token");
    const int status = answer.status;
    if (status == 200) return token_of(ask, answer.body);
    if (ask.is_machine && (status == 400 || status == 403)) return {};
    const bool is_starting = ask.is_machine && (status == 404 || status == 410);
    if (status != 0 && status != 408 && status != 429 && status < 500 && !is_starting)
      fail(ExitCode::kUnusable,
           "[azure] {}: expected a token, got {}; correct the identity, or put a SAS into "
           "AZURE_STORAGE_SAS_TOKEN",
           ask.source, said(answer));
    if (number == kTries)
      fail(ExitCode::kStorage, "[azure] {}: expected a token, got {} in each of {} tries; try again later",
           ask.source, said(answer), kTries);
    if (!wait_to_retry(std::max(wait_s, std::min(answer.wait_s, kAnswer_s)), stop))
      fail(ExitCode::kTerminated, "[azure] stopped while asking for a token");
  }
}

/// Keeps the token of this process's identity.
class KeptToken {
 public:
  std::string get(const std::stop_token& stop) {
    const std::lock_guard lock(mutex_);
    std::string now_key;  // another identity has another token
    for (const char* name : {"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET",
                             "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT",
                             "IDENTITY_HEADER", "AZURE_POD_IDENTITY_AUTHORITY_HOST"})
      now_key += environment_variable(name) + "\n";
    if (now_key != key_) key_ = now_key, token_.reset(), next_try_s_ = 0;
    const double now = now_s();
    if (token_ && (now < token_->renew_s || (now < next_try_s_ && now + 1 < token_->expires_s)))
      return token_->text;
    try {
      token_ = fetch(find_ask(), stop).value_or(Token{.renew_s = now + 1e9});
    } catch (const Error& error) {
      // The present token serves while it is good.
      if (!token_ || now + 1 >= token_->expires_s || error.code() == ExitCode::kTerminated) throw;
      next_try_s_ = now_s() + kBetweenRenewals_s;
    }
    return token_->text;
  }

 private:
  std::mutex mutex_;
  std::string key_;
  std::optional<Token> token_;  // its text is "" when there is no identity
  double next_try_s_ = 0;
};

}  // namespace

std::string azure_token(const std::stop_token& stop) {
  static KeptToken kept;
  return kept.get(stop);
}

void check_encrypted(const std::string& url, const std::string& where) {
  if (url.starts_with("https://")) return;
  const std::string rest = url.starts_with("http://") ? url.substr(7) : "";
  const std::string host = rest.substr(0, rest.find_first_of(":/"));
  if (host == "127.0.0.1" || host == "localhost" || rest.starts_with("[::1]")) return;
  fail(ExitCode::kUnusable, "{}: expected https://HOST, got {}: a token must not be sent unencrypted", where,
       without_secrets(url));
}

}  // namespace tycho
