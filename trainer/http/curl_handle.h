// The options and headers of one request over libcurl.
#pragma once
#include <string>

#include "trainer/http/curl_library.h"

namespace tycho {

/// Sets up and performs requests with a handle of libcurl, which it does not own. Of one thread.
class CurlHandle {
 public:
  explicit CurlHandle(CURL* handle) : curl_(curl_library()), handle_(handle) {}
  ~CurlHandle() { curl_.slist_free_all(headers_); }
  CurlHandle(const CurlHandle&) = delete;

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_.easy_setopt(handle_, option, value);
  }
  /// "Name: value".
  void add_header(const std::string& line) { headers_ = curl_.slist_append(headers_, line.c_str()); }
  /// Which certificates are trusted: those of `ca_file`; where it is "", of CURL_CA_BUNDLE or SSL_CERT_FILE,
  /// and of SSL_CERT_DIR, or the system's own.
  void set_certificates(const std::string& ca_file);
  CURLcode perform();

 private:
  const CurlLibrary& curl_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
};

}  // namespace tycho
