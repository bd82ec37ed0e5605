// The options and headers of one request over libcurl.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "trainer/http/curl_library.h"

namespace tycho {

/// Who gets an answer while it arrives. Each function is handed `context`.
struct CurlReceiver {
  void* context;
  curl_write_callback take_header, take_body;
  curl_xferinfo_callback look_at_stop;  // not 0: the request ends
};

/// The seconds of a line "Retry-After: 5", at most an hour; nothing for another header.
std::optional<double> retry_after_s(std::string_view header_line);

/// Sets up and performs requests with a handle of libcurl, which it does not own. Of one thread.
class CurlHandle {
 public:
  explicit CurlHandle(CURL* handle) : curl_(curl_library()), handle_(handle) {}
  ~CurlHandle();
  CurlHandle(const CurlHandle&) = delete;

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_.easy_setopt(handle_, option, value);
  }
  /// "Name: value".
  void add_header(const std::string& line) { headers_ = curl_.slist_append(headers_, line.c_str()); }
  /// Over HTTP or HTTPS. Which certificates are trusted: those of `ca_file`; where it is "", of
  /// CURL_CA_BUNDLE or SSL_CERT_FILE, and of SSL_CERT_DIR, or the system's own.
  void set_target(const std::string& url, const std::string& ca_file);
  void set_receiver(const CurlReceiver& receiver);
  CURLcode perform();
  /// What went wrong, in libcurl's words, without secrets.
  std::string problem(CURLcode code) const;

 private:
  const CurlLibrary& curl_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
  char error_text_[CURL_ERROR_SIZE] = "";
};

}  // namespace tycho
