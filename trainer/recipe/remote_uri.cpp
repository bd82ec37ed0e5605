// Parses the forms of a remote without accessing it: a recipe may be checked on machines that cannot reach
// it.
#include "trainer/recipe/remote_uri.h"

#include <array>
#include <cctype>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {
namespace {

constexpr std::string_view kForms =
    "a folder, file:///FOLDER, https://HOST/PATH, http://HOST/PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
    "az://ACCOUNT/CONTAINER/PREFIX or "
    "hf://datasets/OWNER/NAME[@REVISION][/FOLDER]";

std::string without_end_slash(std::string text) {
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

/// Returns "s3" for "s3://x"; "" if there is no scheme.
std::string scheme_of(const std::string& remote) {
  const size_t end = remote.find("://");
  return end == std::string::npos ? "" : remote.substr(0, end);
}

std::string other_scheme(const std::string& scheme) {
  if (scheme == "azure" || scheme == "azure-dl" || scheme == "abfs" || scheme == "abfss")
    return "write https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX and put a SAS into "
           "AZURE_STORAGE_SAS_TOKEN";
  return fmt::format("write {}, or copy the data to a folder", kForms);
}

std::string web_problem(const std::string& remote, size_t begin) {
  const std::string host = remote.substr(begin, remote.find('/', begin) - begin);
  if (host.find('@') != std::string::npos)
    return "holds a user name or password, which every file of a run would show: leave it out";
  if (remote.find_first_of("?#", begin) != std::string::npos)
    return "holds a query, which may be a secret: put what follows \"?\" into a variable of the environment, "
           "and "
           "its name into remote_sas_env (Azure's default is AZURE_STORAGE_SAS_TOKEN)";
  return host.empty() ? "names no host: write https://HOST/PATH" : "";
}

bool is_bucket(const std::string& name) {
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.' && c != '_') return false;
  return !name.empty();
}

/// Splits "a/b/c/d" into "a", "b" and "c/d".
std::array<std::string, 3> three_parts(const std::string& text) {
  const size_t first = text.find('/');
  if (first == std::string::npos) return {text, "", ""};
  const size_t second = text.find('/', first + 1);
  if (second == std::string::npos) return {text.substr(0, first), text.substr(first + 1), ""};
  return {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

}  // namespace

RemoteUri RemoteUri::below(const std::string& split) const {
  if (split.empty()) return *this;
  RemoteUri place = *this;
  if (kind == Kind::kHub)
    place.text = parse_hub_name(text).below(split).text();
  else
    place.text += "/" + (kind == Kind::kHttp ? percent_encoded(split) : split);
  if (kind == Kind::kFolder) place.folder += "/" + split;
  if (kind == Kind::kS3 || kind == Kind::kAzure) place.prefix += (prefix.empty() ? "" : "/") + split;
  return place;
}

std::string remote_problem(const std::string& remote) {
  for (const char c : remote)
    if (static_cast<unsigned char>(c) < ' ') return "holds a control character";
  const std::string scheme = scheme_of(remote);
  if (remote.empty()) return fmt::format("is empty: write {}", kForms);
  if (scheme.empty()) return "";
  const size_t begin = scheme.size() + 3;
  if (scheme == "http" || scheme == "https") return web_problem(remote, begin);
  if (scheme == "file")
    return remote.size() > begin && remote[begin] == '/' ? "" : "names a host: write file:///FOLDER";
  if (scheme == "s3")
    return is_bucket(remote.substr(begin, remote.find('/', begin) - begin)) ? ""
                                                                            : "expected s3://BUCKET/PREFIX";
  if (scheme == "gs")
    return is_bucket(remote.substr(begin, remote.find('/', begin) - begin)) ? ""
                                                                            : "expected gs://BUCKET/PREFIX";
  if (scheme == "az") {
    const auto [account, container, prefix] = three_parts(remote.substr(begin));
    return is_bucket(account) && is_bucket(container) ? "" : "expected az://ACCOUNT/CONTAINER/PREFIX";
  }
  if (scheme == "hf") return hub_name_problem(remote);
  return fmt::format("{}:// is not supported; {}", scheme, other_scheme(scheme));
}

RemoteUri parse_remote(const std::string& remote) {
  if (const std::string problem = remote_problem(remote); !problem.empty())
    fail(ExitCode::kUnusable, "[data] remote {}: {}", without_secrets(remote), problem);
  RemoteUri place;
  place.text = without_end_slash(remote);
  const std::string scheme = scheme_of(remote);
  if (scheme.empty() || scheme == "file") {
    place.folder = without_end_slash(scheme.empty() ? remote : remote.substr(7));
  } else if (scheme == "s3" || scheme == "gs") {
    place.kind = RemoteUri::Kind::kS3;
    if (scheme == "gs") place.endpoint = "https://storage.googleapis.com";
    const size_t slash = place.text.find('/', 5);
    place.bucket = place.text.substr(5, slash - 5);
    if (slash != std::string::npos) place.prefix = place.text.substr(slash + 1);
  } else if (scheme == "az") {
    place.kind = RemoteUri::Kind::kAzure;
    const auto [account, container, prefix] = three_parts(place.text.substr(5));
    place.account = account, place.bucket = container, place.prefix = prefix;
  } else if (scheme == "hf") {
    place.kind = RemoteUri::Kind::kHub;
    place.text = parse_hub_name(place.text).text();
  } else {
    place.kind = RemoteUri::Kind::kHttp;
  }
  return place;
}

std::string percent_encoded(const std::string& path) {
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos)
      text += c;
    else
      text += fmt::format("%{:02X}", byte);
  }
  return text;
}

}  // namespace tycho
