// Objects by path (an endpoint of one's own, a bucket with dots) or by host name (AWS).
#include "trainer/data/remote/s3_files.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "trainer/data/remote/aws_settings.h"
#include "trainer/data/remote/http_client.h"

namespace tycho {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

class S3Files final : public RemoteFiles {
 public:
  S3Files(RemotePlace place, AwsSettings settings)
      : place_(std::move(place)), settings_(std::move(settings)) {
    const bool by_path = !settings_.endpoint.empty() || place_.bucket.find('.') != std::string::npos;
    base_ = settings_.endpoint;
    if (base_.empty())
      base_ =
          fmt::format("https://{}s3.{}.amazonaws.com", by_path ? "" : place_.bucket + ".", settings_.region);
    const size_t host = base_.find("://") + 3, slash = base_.find('/', host);
    host_ = base_.substr(host, slash - host);
    if (slash != std::string::npos) path_ = base_.substr(slash), base_.resize(slash);
    if (by_path) path_ += "/" + place_.bucket;
    if (!place_.prefix.empty()) path_ += "/" + percent_encoded(place_.prefix);
  }

  std::string place_of(const std::string& name) const override { return place_.text + "/" + name; }

  FetchOutcome fetch(const std::string& name, const FetchWish& wish, FetchSink& sink) override {
    const std::string path = path_ + "/" + percent_encoded(name);
    HttpRequest request{.url = base_ + path, .follow_redirects = false, .ca_file = settings_.ca_file};
    const bool is_signed = !settings_.credentials.key_id.empty();
    if (is_signed)
      request.headers =
          signed_headers({host_, path, {}, settings_.region, "s3", utc_now()}, settings_.credentials);
    FetchOutcome outcome = client_.get(request, wish, sink);
    if (outcome.state == FetchOutcome::State::kRefused && !is_signed)
      outcome.problem +=
          "; the request was not signed: neither AWS_ACCESS_KEY_ID nor an AWS profile has credentials";
    return outcome;
  }

 private:
  RemotePlace place_;
  AwsSettings settings_;
  std::string base_, host_, path_;
  HttpClient client_;
};

}  // namespace

std::unique_ptr<RemoteFiles> make_s3_files(const RemotePlace& place) {
  return std::make_unique<S3Files>(place, find_aws_settings());
}

}  // namespace tycho
