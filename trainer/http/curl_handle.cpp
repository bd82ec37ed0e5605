// Hands options and headers to libcurl.
#include "trainer/http/curl_handle.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>

#include "trainer/base/environment.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

constexpr double kMostWait_s = 3600;

}  // namespace

std::optional<double> retry_after_s(std::string_view header_line) {
  constexpr std::string_view kName = "retry-after:";
  const std::string line(header_line);
  if (::strncasecmp(line.c_str(), kName.data(), kName.size()) != 0) return std::nullopt;
  return std::clamp(std::strtod(line.c_str() + kName.size(), nullptr), 0.0, kMostWait_s);
}

CurlHandle::~CurlHandle() {
  set<char*>(CURLOPT_ERRORBUFFER, nullptr);
  curl_.slist_free_all(headers_);
}

void CurlHandle::set_target(const std::string& url, const std::string& ca_file) {
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_USERAGENT, "tycho");
  std::string file = ca_file;
  if (file.empty()) file = environment_variable("CURL_CA_BUNDLE");
  if (file.empty()) file = environment_variable("SSL_CERT_FILE");
  if (!file.empty()) set(CURLOPT_CAINFO, file.c_str());
  if (const std::string folder = environment_variable("SSL_CERT_DIR"); !folder.empty())
    set(CURLOPT_CAPATH, folder.c_str());
}

void CurlHandle::set_receiver(const CurlReceiver& receiver) {
  set(CURLOPT_HEADERFUNCTION, receiver.take_header);
  set(CURLOPT_HEADERDATA, receiver.context);
  set(CURLOPT_WRITEFUNCTION, receiver.take_body);
  set(CURLOPT_WRITEDATA, receiver.context);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, receiver.look_at_stop);
  set(CURLOPT_XFERINFODATA, receiver.context);
}

CURLcode CurlHandle::perform() {
  set(CURLOPT_ERRORBUFFER, error_text_);
  set(CURLOPT_HTTPHEADER, headers_);
  return curl_.easy_perform(handle_);
}

std::string CurlHandle::problem(CURLcode code) const {
  return without_secrets(error_text_[0] != '\0' ? error_text_ : curl_.easy_strerror(code));
}

}  // namespace tycho
