// The options and headers of one request over libcurl.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/http/curl_library.h"

namespace tycho {

/// Receives an answer while it arrives. Each function gets `context`.
struct CurlReceiver {
  void* context;
  curl_write_callback take_header, take_body;
  curl_xferinfo_callback look_at_stop;  // returns not 0 to end the request
};

/// Returns the seconds of a line "Retry-After: 5", at most an hour; nullopt for another header.
std::optional<double> retry_after_s(std::string_view header_line);

/// Returns the name of a line "Name: value", in lower case, and its value; "" and "" for another line.
std::pair<std::string, std::string> split_header(std::string_view line);

/// Returns true if the error is about certificates: another try would end in the same way.
bool is_untrusted(CURLcode code);

/// Sets up and performs requests with a handle of libcurl that the caller owns. Used by one thread.
class CurlHandle {
 public:
  explicit CurlHandle(CURL* handle) : curl_(curl_library()), handle_(handle) {}
  ~CurlHandle();
  CurlHandle(const CurlHandle&) = delete;

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_.easy_setopt(handle_, option, value);
  }
  /// Adds a line "Name: value".
  void add_header(const std::string& line) { headers_ = curl_.slist_append(headers_, line.c_str()); }
  /// Sets the URL, HTTP or HTTPS. Trusts the certificates of `ca_file`; if that is "", those of
  /// CURL_CA_BUNDLE or SSL_CERT_FILE, and of SSL_CERT_DIR, or the system's own.
  void set_target(const std::string& url, const std::string& ca_file);
  /// Ends a request in which fewer than 512 bytes move in each second of `stall_s`.
  void set_longest_stall(double stall_s);
  void set_receiver(const CurlReceiver& receiver);
  CURLcode perform();
  /// Returns libcurl's message for an error, without secrets; for an untrusted certificate, also what to do.
  std::string problem(CURLcode code) const;

 private:
  const CurlLibrary& curl_;
  CURL* handle_;
  curl_slist* headers_ = nullptr;
  std::string certificates_;  // file of those that are trusted; "" for libcurl's own
  char error_text_[CURL_ERROR_SIZE] = "";
};

}  // namespace tycho
