// Hands options and headers to libcurl.
#include "trainer/http/curl_handle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "trainer/base/environment.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

constexpr double kMostWait_s = 3600;
constexpr long kSlowest = 512;  // bytes/s: less is a hang

}  // namespace

std::pair<std::string, std::string> split_header(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == line.npos) return {};
  std::string name(line.substr(0, colon));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  line.remove_prefix(colon + 1);
  while (!line.empty() && line.front() <= ' ') line.remove_prefix(1);
  while (!line.empty() && line.back() <= ' ') line.remove_suffix(1);
  return {std::move(name), std::string(line)};
}

std::optional<double> retry_after_s(std::string_view header_line) {
  const auto [name, value] = split_header(header_line);
  if (name != "retry-after") return std::nullopt;
  return std::clamp(std::strtod(value.c_str(), nullptr), 0.0, kMostWait_s);
}

bool is_untrusted(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_ISSUER_ERROR;
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
  certificates_ = ca_file;
  if (certificates_.empty()) certificates_ = environment_variable("CURL_CA_BUNDLE");
  if (certificates_.empty()) certificates_ = environment_variable("SSL_CERT_FILE");
  if (certificates_.empty()) certificates_ = curl_.certificates;
  if (!certificates_.empty()) set(CURLOPT_CAINFO, certificates_.c_str());
  if (const std::string folder = environment_variable("SSL_CERT_DIR"); !folder.empty())
    set(CURLOPT_CAPATH, folder.c_str());
}

void CurlHandle::set_longest_stall(double stall_s) {
  set(CURLOPT_LOW_SPEED_LIMIT, kSlowest);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(stall_s)));
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
  std::string text = error_text_[0] != '\0' ? error_text_ : curl_.easy_strerror(code);
  if (is_untrusted(code))
    text += fmt::format("; the trusted certificates are {}: name another file in CURL_CA_BUNDLE",
                        certificates_.empty() ? "the system's" : "those of " + certificates_);
  return without_secrets(text);
}

}  // namespace tycho
