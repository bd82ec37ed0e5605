// Every try has a token of its own: a token may expire while an upload waits.
#include "trainer/buckets/azure_connection.h"

#include "trainer/base/text/base64.h"
#include "trainer/buckets/content_digest.h"
#include "trainer/http/curl_library.h"

namespace tycho {

AzureConnection::AzureConnection(const RemoteUri& place, const RequestTries& tries)
    : place_(place),
      container_url_(azure_container_url(place)),
      access_(find_azure_access(place, /*sas_env=*/"")),
      tries_(tries) {
  curl_library();  // a machine without it hears so now
}

StoreAnswer AzureConnection::ask(const AzureCall& call, const std::string& body,
                                 std::initializer_list<int> also, const std::stop_token& stop) const {
  constexpr size_t kMostAnswerBytes = size_t{64} << 20;
  std::string url = container_url_, query;
  if (!call.name.empty()) url += "/" + percent_encoded(key_of(call.name));
  for (const auto& [name, value] : call.query)
    query += (query.empty() ? "" : "&") + name + "=" + percent_encoded(value);
  if (!access_.sas.empty()) query += (query.empty() ? "" : "&") + access_.sas;
  if (!query.empty()) url += "?" + query;
  std::vector<std::string> own;
  for (const auto& [name, value] : call.headers) own.push_back(name + ": " + value);
  if (call.method == "PUT") {
    own.push_back("Content-MD5: " + base64(content_md5(body)));
    own.emplace_back("Content-Type: application/octet-stream");
  }
  const auto make = [&] {
    std::vector<std::string> headers = azure_headers(access_, container_url_, stop);
    headers.insert(headers.end(), own.begin(), own.end());
    return HttpCall{.method = call.method,
                    .url = url,
                    .headers = std::move(headers),
                    .body = body,
                    .most_body_bytes = kMostAnswerBytes};
  };
  return ask_store({call.name.empty() ? place_.text : place_of(call.name), make, also}, tries_, stop);
}

}  // namespace tycho
