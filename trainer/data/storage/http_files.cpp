// URLs of files below a URL.
#include "trainer/data/storage/http_files.h"

#include <utility>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/base/secrets.h"
#include "trainer/data/storage/http_get.h"

namespace tycho {
namespace {

class WebFiles final : public RemoteFiles {
 public:
  WebFiles(std::string base, std::string query) : base_(std::move(base)), query_(std::move(query)) {}

  std::string place_of(const std::string& name) const override { return base_ + "/" + percent_encoded(name); }

  FetchOutcome fetch(const std::string& name, const FetchOptions& options, FetchSink& sink) override {
    HttpRequest request{place_of(name) + (query_.empty() ? "" : "?" + query_), {}};
    return http_get(request, options, sink);
  }

 private:
  std::string base_, query_;
};

std::string sas_of(const RemoteUri& place, const std::string& given) {
  const size_t begin = place.text.find("://") + 3;
  const std::string host = place.text.substr(begin, place.text.find('/', begin) - begin);
  const bool is_azure = place.text.starts_with("https:") && host.ends_with(".blob.core.windows.net");
  const std::string name = !given.empty() ? given : is_azure ? "AZURE_STORAGE_SAS_TOKEN" : "";
  if (name.empty()) return "";
  std::string query = environment_variable(name.c_str());
  if (query.empty()) {
    if (given.empty()) return "";  // a container that everybody may read
    fail(ExitCode::kUnusable, "[data] {}: the variable {}, which remote_sas_env names, is not set",
         place.text, name);
  }
  if (query.front() == '?') query.erase(0, 1);
  for (const char c : query)
    if (c <= ' ' || c == '#')
      fail(ExitCode::kUnusable, "[data] {}: the value of {} is not the query of a URL", place.text, name);
  register_secret(query);
  const size_t signature = query.find("sig=");
  if (signature != std::string::npos)
    register_secret(query.substr(signature + 4, query.find('&', signature) - signature - 4));
  return query;
}

}  // namespace

std::unique_ptr<RemoteFiles> make_web_files(const RemoteUri& place, const std::string& sas_env) {
  return std::make_unique<WebFiles>(place.text, sas_of(place, sas_env));
}

}  // namespace tycho
