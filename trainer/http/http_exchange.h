// One request over HTTP or HTTPS and its whole answer: for servers with small answers, such as trackers.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace tycho {

struct HttpCall {
  std::string method = "GET";
  std::string url;                   // with its query, encoded
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  double timeout_s = 20;  // for the whole exchange
  std::string ca_file;    // file of trusted certificates; "" for the usual ones (curl_handle.h)
};

struct HttpAnswer {
  int status = 0;       // 0: no answer
  std::string body;     // at most 4 MiB; a longer one counts as no answer
  std::string problem;  // why there was no answer, for display, without secrets
  double wait_s = 0;    // time to wait that the server asks for (Retry-After)
};

/// Sends a request and returns the answer. Does not follow redirects, since the data may be for that server
/// alone. Proxies come from the environment, like curl's (https_proxy, no_proxy). Callable from any thread;
/// returns soon after a request to stop. Throws Error (kUnusable) when libcurl is missing.
HttpAnswer http_exchange(const HttpCall& call, std::stop_token stop = {});

}  // namespace tycho
