// URLs of files below a URL.
#include "trainer/data/storage/http_files.h"

#include <utility>

#include "trainer/data/storage/azure_access.h"
#include "trainer/data/storage/http_get.h"

namespace tycho {
namespace {

class WebFiles final : public RemoteFiles {
 public:
  WebFiles(std::string base, AzureAccess access) : base_(std::move(base)), access_(std::move(access)) {}

  std::string place_of(const std::string& name) const override { return base_ + "/" + percent_encoded(name); }

  FetchOutcome fetch(const std::string& name, const FetchOptions& options, FetchSink& sink) override {
    HttpRequest request{place_of(name) + (access_.sas.empty() ? "" : "?" + access_.sas), {}};
    if (access_.may_use_token) {
      request.headers = azure_headers(access_, base_, options.stop);
      request.follow_redirects = false;
    }
    return http_get(request, options, sink);
  }

 private:
  std::string base_;
  AzureAccess access_;
};

}  // namespace

std::unique_ptr<RemoteFiles> make_web_files(const RemoteUri& place, const std::string& sas_env) {
  std::string base = place.text;
  if (place.kind == RemoteUri::Kind::kAzure) {
    base = azure_container_url(place);
    if (!place.prefix.empty()) base += "/" + percent_encoded(place.prefix);
  }
  return std::make_unique<WebFiles>(base, find_azure_access(place, sas_env));
}

}  // namespace tycho
