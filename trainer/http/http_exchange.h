// One request over HTTP or HTTPS and its whole answer: for servers with small answers, and for uploads.
#pragma once
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tycho {

struct HttpCall {
  std::string method = "GET";
  std::string url;                   // with its query, encoded
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  std::string body_file = {};  // sent in place of `body`: the bytes [body_begin, body_end) of this file
  int64_t body_begin = 0, body_end = 0;
  double timeout_s = 20;             // for the whole exchange; 0: as long as bytes move
  double stall_s = 0;                // longest time in which almost no byte moves; 0: any
  std::string ca_file;               // file of trusted certificates; "" for the usual ones (curl_handle.h)
  size_t most_body_bytes = 4 << 20;  // of the answer: a longer one counts as no answer
  bool is_direct = false;            // past every proxy, as for addresses of this machine's own network
};

struct HttpAnswer {
  int status = 0;             // 0: no answer
  std::string body;           // "" for HEAD
  std::string problem;        // why there was no answer, for display, without secrets
  double wait_s = 0;          // time to wait that the server asks for (Retry-After)
  bool is_untrusted = false;  // no answer because of certificates: another try would end in the same way
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  /// Returns the value of the header `name`, given in lower case; "" where the server did not send it.
  std::string header(std::string_view name) const;
  /// Returns true if the same request may succeed later: the server was not reached, or is busy or broken.
  bool may_pass() const;
};

/// Sends a request and returns the answer. Does not follow redirects, since the data may be for that server
/// alone: `header("location")` says where it points. Keeps the connection for the next exchange. Proxies come
/// from the environment, like curl's (https_proxy, no_proxy). Callable from any thread; returns soon after a
/// request to stop. Throws Error (kUnusable) when libcurl is missing.
HttpAnswer http_exchange(const HttpCall& call, std::stop_token stop = {});

}  // namespace tycho
