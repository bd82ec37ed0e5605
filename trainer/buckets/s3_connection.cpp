// Every try is signed anew: signatures hold for minutes, and waits may be longer.
#include "trainer/buckets/s3_connection.h"

#include "trainer/base/hmac.h"
#include "trainer/base/text/base64.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/http/curl_library.h"

namespace tycho {

S3Connection::S3Connection(RemoteUri place, const RequestTries& tries)
    : place_(std::move(place)), settings_(find_aws_settings(place_)), tries_(tries) {
  curl_library();  // a machine without it hears so now
}

StoreAnswer S3Connection::ask(S3Call call, const std::string& body, std::initializer_list<int> also,
                              const std::stop_token& stop) const {
  constexpr size_t kMostAnswerBytes = size_t{64} << 20;
  const bool has_body = call.method == "PUT" || call.method == "POST";
  if (has_body) {
    call.headers.emplace_back("content-md5", base64(content_md5(body)));
    call.headers.emplace_back("content-type", "application/octet-stream");
    call.body_sha256 = hex(content_sha256(body));
  }
  std::string lack;
  const auto make = [&] {
    S3Request request = s3_request(settings_, place_, call, stop);
    lack = request.lack;
    return HttpCall{.method = call.method,
                    .url = std::move(request.url),
                    .headers = std::move(request.headers),
                    .body = body,
                    .ca_file = settings_.ca_file,
                    .most_body_bytes = kMostAnswerBytes};
  };
  const auto hint = [&] { return lack.empty() ? "" : "; the request was not signed: " + lack; };
  return ask_store({call.name.empty() ? place_.text : place_of(call.name), make, also, hint}, tries_, stop);
}

}  // namespace tycho
