// Performs a request with a handle of its own: trackers are asked once a second at most.
#include "trainer/http/http_exchange.h"

#include <memory>

#include "trainer/base/error.h"
#include "trainer/http/curl_handle.h"

namespace tycho {
namespace {

constexpr size_t kMostBodyBytes = 4 << 20;

/// An answer while it arrives.
struct Arriving {
  HttpAnswer& answer;
  std::stop_token stop;
  bool too_long = false;
};

size_t take_header(char* data, size_t size, size_t count, void* context) {
  const std::string_view line(data, size * count);
  if (const auto wait_s = retry_after_s(line)) static_cast<Arriving*>(context)->answer.wait_s = *wait_s;
  return line.size();
}

size_t take_body(char* data, size_t size, size_t count, void* context) {
  auto& arriving = *static_cast<Arriving*>(context);
  const size_t num_bytes = size * count;
  arriving.too_long = arriving.answer.body.size() + num_bytes > kMostBodyBytes;
  if (arriving.too_long) return 0;
  arriving.answer.body.append(data, num_bytes);
  return num_bytes;
}

int look_at_stop(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Arriving*>(context)->stop.stop_requested() ? 1 : 0;
}

void set_request(CurlHandle& handle, const HttpCall& call) {
  const auto timeout_ms = static_cast<long>(call.timeout_s * 1000);
  handle.set(CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
  handle.set(CURLOPT_TIMEOUT_MS, timeout_ms);
  handle.set(CURLOPT_FOLLOWLOCATION, 0L);
  handle.set_target(call.url, call.ca_file);
  for (const std::string& line : call.headers) handle.add_header(line);
  if (call.method == "GET") return;
  handle.set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
  handle.set(CURLOPT_POSTFIELDS, call.body.c_str());
  handle.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
  handle.add_header("Expect:");  // or a large body would wait for a server's word first
}

}  // namespace

HttpAnswer http_exchange(const HttpCall& call, std::stop_token stop) {
  HttpAnswer answer;
  if (stop.stop_requested()) {
    answer.problem = "stopped";
    return answer;
  }
  const CurlLibrary& curl = curl_library();
  const std::unique_ptr<CURL, decltype(curl.easy_cleanup)> easy(curl.easy_init(), curl.easy_cleanup);
  Arriving arriving{answer, stop};
  CurlHandle handle(easy.get());
  set_request(handle, call);
  handle.set_receiver({&arriving, &take_header, &take_body, &look_at_stop});
  const CURLcode code = handle.perform();
  if (code == CURLE_OK) {
    long status = 0;
    curl.easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    return answer;
  }
  answer.body.clear();
  if (code == CURLE_ABORTED_BY_CALLBACK)
    answer.problem = "stopped";
  else if (code == CURLE_OPERATION_TIMEDOUT)
    answer.problem = fmt::format("no answer in {:g} s", call.timeout_s);
  else if (arriving.too_long)
    answer.problem = fmt::format("the answer is longer than {} bytes", kMostBodyBytes);
  else
    answer.problem = handle.problem(code);
  return answer;
}

}  // namespace tycho
