// GET requests over HTTP and HTTPS, and the meaning of a server's response for a download.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/storage/remote_files.h"

namespace tycho {

struct HttpRequest {
  std::string url;                   // as sent, with its query
  std::vector<std::string> headers;  // "Name: value"
  bool follow_redirects = true;      // at most 5, and from HTTPS only to HTTPS
  std::string ca_file;               // certificates to trust; "" for the usual variables and the system's own
};

/// HTTP client that keeps connections open between requests. From any thread. Proxies come from the
/// environment, as curl reads them (https_proxy, no_proxy), certificates from CURL_CA_BUNDLE, SSL_CERT_FILE
/// and SSL_CERT_DIR.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  /// Sends a GET request, with the headers of the range of `options`. Responses 401, 403 and other 4xx are
  /// kRefused with the server's own text, 404 and 410 kAbsent, and 408, 429 and 5xx kFailed.
  FetchOutcome get(const HttpRequest& request, const FetchOptions& options, FetchSink& sink);

 private:
  class Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace tycho
