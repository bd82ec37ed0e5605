// Hands options and headers to libcurl.
#include "trainer/http/curl_handle.h"

#include <cstdlib>

namespace tycho {
namespace {

std::string value_of_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void CurlHandle::set_certificates(const std::string& ca_file) {
  std::string file = ca_file;
  if (file.empty()) file = value_of_variable("CURL_CA_BUNDLE");
  if (file.empty()) file = value_of_variable("SSL_CERT_FILE");
  if (!file.empty()) set(CURLOPT_CAINFO, file.c_str());
  if (const std::string folder = value_of_variable("SSL_CERT_DIR"); !folder.empty())
    set(CURLOPT_CAPATH, folder.c_str());
}

CURLcode CurlHandle::perform() {
  set(CURLOPT_HTTPHEADER, headers_);
  return curl_.easy_perform(handle_);
}

}  // namespace tycho
