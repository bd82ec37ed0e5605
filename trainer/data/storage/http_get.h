// GET requests over HTTP and HTTPS, and the meaning of a server's response for a download.
#pragma once
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

/// Sends a GET request, with the headers of the range of `options`. Keeps its connection for the next
/// request. From any thread. Proxies come from the environment, as curl reads them (https_proxy, no_proxy),
/// certificates from CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR. Responses 401, 403 and other 4xx are
/// kRefused with the server's own text, 404 and 410 kAbsent, and 408, 429 and 5xx kFailed.
FetchOutcome http_get(const HttpRequest& request, const FetchOptions& options, FetchSink& sink);

}  // namespace tycho
