// A SAS is part of the URL; a token is a header.
#include "trainer/data/storage/azure_access.h"

#include <cstdlib>
#include <ctime>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/identities/azure_identity.h"
#include "trainer/identities/identity_request.h"

namespace tycho {
namespace {

constexpr const char* kVersion = "2021-12-02";  // of Azure's protocol

std::string host_of(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find('/', begin) - begin);
}

std::string decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
    i += 2;
  }
  return out;
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

std::string checked_sas(std::string query, const std::string& place, const std::string& name) {
  if (query.front() == '?') query.erase(0, 1);
  for (const char c : query)
    if (c <= ' ' || c == '#')
      fail(ExitCode::kUnusable, "[data] {}: the value of {} is not the query of a URL", place, name);
  register_secret(query);
  const size_t signature = query.find("sig=");
  if (signature != std::string::npos)
    register_secret(query.substr(signature + 4, query.find('&', signature) - signature - 4));
  return query;
}

}  // namespace

bool is_azure_url(const std::string& url) {
  if (!url.starts_with("https://")) return false;
  const std::string host = host_of(url);
  for (const char* end :
       {".blob.core.windows.net", ".blob.core.chinacloudapi.cn", ".blob.core.usgovcloudapi.net"})
    if (host.ends_with(end)) return true;
  return false;
}

RemoteUri as_azure_place(const RemoteUri& place) {
  if (place.kind != RemoteUri::Kind::kHttp || !is_azure_url(place.text)) return place;
  RemoteUri azure = place;
  azure.kind = RemoteUri::Kind::kAzure;
  const std::string host = host_of(place.text);
  azure.endpoint = "https://" + host;
  azure.account = host.substr(0, host.find('.'));
  const std::string path = place.text.substr(azure.endpoint.size());
  const size_t slash = path.find('/', 1);
  azure.bucket = path.empty() ? "" : path.substr(1, slash == std::string::npos ? slash : slash - 1);
  azure.prefix = slash == std::string::npos ? "" : decoded(path.substr(slash + 1));
  return azure;
}

std::string azure_container_url(const RemoteUri& place) {
  std::string url = environment_variable("AZURE_STORAGE_SERVICE_ENDPOINT");
  while (url.ends_with('/')) url.pop_back();
  if (url.empty())
    url = place.endpoint.empty() ? "https://" + place.account + ".blob.core.windows.net" : place.endpoint;
  if (!url.starts_with("https://") && !url.starts_with("http://"))
    fail(ExitCode::kUnusable,
         "[data] AZURE_STORAGE_SERVICE_ENDPOINT: expected https://HOST, got {}, which is no URL",
         without_secrets(url));
  return url + "/" + place.bucket;
}

AzureAccess find_azure_access(const RemoteUri& place, const std::string& sas_env) {
  const bool is_azure = place.kind == RemoteUri::Kind::kAzure || is_azure_url(place.text);
  const std::string name = !sas_env.empty() ? sas_env : is_azure ? "AZURE_STORAGE_SAS_TOKEN" : "";
  if (name.empty()) return {};
  const std::string query = environment_variable(name.c_str());
  if (!query.empty()) return {.sas = checked_sas(query, place.text, name)};
  if (!sas_env.empty())
    fail(ExitCode::kUnusable, "[data] {}: the variable {}, which remote_sas_env names, is not set",
         place.text, name);
  return {.may_use_token = true};
}

std::vector<std::string> azure_headers(const AzureAccess& access, const std::string& url,
                                       const std::stop_token& stop) {
  std::vector<std::string> headers = {fmt::format("x-ms-version: {}", kVersion), "x-ms-date: " + http_date()};
  if (!access.may_use_token) return headers;
  if (const std::string token = azure_token(stop); !token.empty()) {
    check_encrypted(url, "[data]");
    headers.push_back("Authorization: Bearer " + token);
  }
  return headers;
}

}  // namespace tycho
