// Tells what may pass from what will not; reads errors in JSON and in XML.
#include "trainer/identities/identity_request.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/base/secrets.h"
#include "trainer/http/answer_line.h"
#include "trainer/http/retry_wait.h"
#include "trainer/http/xml_text.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

bool contains(const std::vector<int>& statuses, int status) {
  return std::find(statuses.begin(), statuses.end(), status) != statuses.end();
}

bool may_pass(const HttpAnswer& answer) {
  static const std::set<std::string> kPassing = {"IDPCommunicationError", "Throttling",
                                                 "ThrottlingException"};
  return answer.may_pass() || (answer.status == 400 && kPassing.contains(xml_value(answer.body, "Code")));
}

std::string said(const HttpAnswer& answer) {
  if (answer.status == 0) return answer.problem;
  std::string text;
  if (const Json json = Json::parse(answer.body, nullptr, false); json.is_object())
    for (const char* name : {"error_description", "error", "Message", "message"})
      if (const auto found = json.find(name); text.empty() && found != json.end() && found->is_string())
        text = found->get<std::string>();
  if (const std::string code = xml_value(answer.body, "Code"); text.empty() && !code.empty())
    text = code + ": " + xml_value(answer.body, "Message");
  return fmt::format("{} ({})", answer.status, answer_line(text.empty() ? answer.body : text));
}

}  // namespace

HttpAnswer ask_identity(const IdentityRequest& request, const std::stop_token& stop) {
  constexpr double kLongestWait_s = 30;
  double wait_s = request.first_wait_s;
  for (int number = 1;; ++number, wait_s *= 2) {
    HttpAnswer answer = http_exchange(request.call, stop);
    if (stop.stop_requested())
      fail(ExitCode::kTerminated, "{} stopped while asking for a token", request.place);
    if (answer.status == 200 || contains(request.also, answer.status)) return answer;
    if (!may_pass(answer) && !contains(request.also_passing, answer.status))
      fail(ExitCode::kUnusable, "{} {}: expected a token, got {}; {}", request.place, request.source,
           said(answer), request.advice);
    if (number == request.tries)
      fail(ExitCode::kStorage, "{} {}: expected a token, got {} in each of {} tries; try again later",
           request.place, request.source, said(answer), number);
    if (!wait_to_retry(std::max(wait_s, std::min(answer.wait_s, kLongestWait_s)), stop))
      fail(ExitCode::kTerminated, "{} stopped while asking for a token", request.place);
  }
}

std::string form_of(const FormPairs& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs)
    text += (text.empty() ? "" : "&") + name + "=" + percent_encoded(value);
  return text;
}

std::string read_secret_file(const std::string& path) {
  std::string text = read_file(path);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  register_secret(text);
  return text;
}

std::string identity_owner(std::initializer_list<const char*> prefixes) {
  std::string text;
  for (char** variable = environ; *variable != nullptr; ++variable)
    for (const char* prefix : prefixes)
      if (std::string_view(*variable).starts_with(prefix)) text.append(*variable) += '\n';
  return text;
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
