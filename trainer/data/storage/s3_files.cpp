// Objects of a bucket, fetched with signed requests.
#include "trainer/data/storage/s3_files.h"

#include <utility>

#include "trainer/data/storage/aws_settings.h"
#include "trainer/data/storage/http_get.h"
#include "trainer/data/storage/s3_request.h"

namespace tycho {
namespace {

class S3Files final : public RemoteFiles {
 public:
  S3Files(RemoteUri place, AwsSettings settings) : place_(std::move(place)), settings_(std::move(settings)) {}

  std::string place_of(const std::string& name) const override { return place_.text + "/" + name; }

  FetchOutcome fetch(const std::string& name, const FetchOptions& options, FetchSink& sink) override {
    const S3Request asked = s3_request(settings_, place_, {.name = name}, options.stop);
    HttpRequest request{
        .url = asked.url, .headers = asked.headers, .follow_redirects = false, .ca_file = settings_.ca_file};
    FetchOutcome outcome = http_get(request, options, sink);
    if (outcome.state == FetchOutcome::State::kRefused && !asked.lack.empty())
      outcome.problem += "; the request was not signed: " + asked.lack;
    return outcome;
  }

 private:
  RemoteUri place_;
  AwsSettings settings_;
};

}  // namespace

std::unique_ptr<RemoteFiles> make_s3_files(const RemoteUri& place) {
  return std::make_unique<S3Files>(place, find_aws_settings(place));
}

}  // namespace tycho
