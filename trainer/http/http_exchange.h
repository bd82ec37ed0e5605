// One request over HTTP or HTTPS and its whole answer: for servers with small answers, such as trackers.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace tycho {

struct HttpCall {
  std::string method = "GET";
  std::string url;                   // as it is sent, with its query
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  double timeout_s = 20;  // for the whole exchange
  std::string ca_file;    // of certificates to trust; "" for the usual ones (curl_handle.h)
};

struct HttpAnswer {
  int status = 0;       // 0: there was no answer
  std::string body;     // 4 MiB at most; what is beyond them counts as no answer
  std::string problem;  // why there was no answer, as people read it, without secrets
  double wait_s = 0;    // how long the server asks to wait (Retry-After)
};

/// Redirects are not followed: what is sent may be for that server alone. Proxies come from the environment,
/// as curl reads them (https_proxy, no_proxy). From any thread; returns soon after a request to stop. Throws
/// Error (kUnusable) when libcurl is missing.
HttpAnswer http_exchange(const HttpCall& call, std::stop_token stop = {});

}  // namespace tycho
