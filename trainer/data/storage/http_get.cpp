// Judges what arrives while it arrives.
#include "trainer/data/storage/http_get.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "trainer/data/storage/server_text.h"
#include "trainer/http/curl_handle.h"
#include "trainer/http/curl_loan.h"

namespace tycho {
namespace {

using State = FetchOutcome::State;
constexpr size_t kMostErrorText = 2000;

/// A response while it arrives.
struct Answer {
  const FetchOptions& options;
  FetchSink& sink;
  long status = 0;
  bool began = false;
  int64_t range_begin = -1;
  std::string version, modified, error_text;
  double wait_s = 0;
  std::exception_ptr error;  // thrown by the sink
  bool misplaced = false;    // the server sent a range that was not asked for

  bool is_good() const { return status == 200 || status == 206; }
};

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto& answer = *static_cast<Answer*>(context);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {  // first line of another response, after a redirect or a proxy's
    const size_t space = line.find(' ');
    answer.status =
        space == line.npos ? 0 : std::strtol(std::string(line.substr(space)).c_str(), nullptr, 10);
    answer.version.clear(), answer.modified.clear(), answer.range_begin = -1, answer.wait_s = 0;
    return line.size();
  }
  const auto [name, value] = split_header(line);
  // A weak ETag does not promise equal bytes.
  if (name == "etag" && !value.starts_with("W/")) answer.version = value;
  if (name == "last-modified") answer.modified = value;
  if (name == "content-range" && value.starts_with("bytes "))
    answer.range_begin = std::strtoll(value.c_str() + 6, nullptr, 10);
  if (const auto wait_s = retry_after_s(line)) answer.wait_s = *wait_s;
  return line.size();
}

size_t on_data(char* data, size_t size, size_t count, void* context) {
  auto& answer = *static_cast<Answer*>(context);
  const size_t num_bytes = size * count;
  if (!answer.is_good()) {
    answer.error_text.append(data, std::min(num_bytes, kMostErrorText - answer.error_text.size()));
    return num_bytes;
  }
  try {
    if (!answer.began) {
      const int64_t begin = answer.status == 200 ? 0 : answer.range_begin;
      answer.misplaced = begin != 0 && begin != answer.options.offset;
      if (answer.misplaced || begin < 0) return 0;
      answer.sink.begin(begin);
      answer.began = true;
    }
    answer.sink.write(data, num_bytes);
  } catch (...) {
    answer.error = std::current_exception();
    return 0;
  }
  return num_bytes;
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Answer*>(context)->options.stop.stop_requested() ? 1 : 0;
}

/// Returns the outcome that the server's status means.
FetchOutcome judged(const Answer& answer) {
  const long status = answer.status;
  std::string problem = fmt::format("the server answers {}", status);
  if (const std::string text = shown_server_text(answer.error_text); !text.empty())
    problem += " (" + text + ")";
  FetchOutcome outcome{State::kRefused, problem, answer.version, answer.wait_s};
  if (status == 404 || status == 410) outcome.state = State::kAbsent;
  if (status == 408 || status == 425 || status == 429 || status >= 500) outcome.state = State::kFailed;
  // A file that has become shorter is fetched again from its beginning.
  if (status == 416 && answer.options.offset > 0) outcome.state = State::kFailed;
  if (status == 401 || status == 403)
    outcome.problem += "; are the credentials right, and may they read it? See docs/data.md, Remote data";
  if (status == 301 || status == 302 || status == 307 || status == 308)
    outcome.problem += "; redirects are not followed here: is the bucket in another region (AWS_REGION)?";
  return outcome;
}

/// Returns the outcome that libcurl's result means. `text`: libcurl's message.
FetchOutcome judged(CURLcode code, const std::string& text, const FetchOptions& options) {
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK: return {State::kStopped, "stopped"};
    case CURLE_OPERATION_TIMEDOUT:
      return {State::kFailed, fmt::format("no answer, or almost no bytes, for {} s", options.timeout_s)};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS: return {State::kRefused, text};
    default: return {is_untrusted(code) ? State::kRefused : State::kFailed, text};
  }
}

void set_limits(CurlHandle& handle, const HttpRequest& request, double timeout_s) {
  handle.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_s * 1000));
  handle.set_longest_stall(timeout_s);
  const bool encrypted = request.url.starts_with("https:");
  handle.set(CURLOPT_REDIR_PROTOCOLS_STR, encrypted ? "https" : "http,https");
  handle.set(CURLOPT_FOLLOWLOCATION, request.follow_redirects ? 1L : 0L);
  handle.set(CURLOPT_MAXREDIRS, 5L);
  handle.set(CURLOPT_BUFFERSIZE, 262144L);
}

}  // namespace

FetchOutcome http_get(const HttpRequest& request, const FetchOptions& options, FetchSink& sink) {
  if (options.stop.stop_requested()) return {State::kStopped, "stopped"};
  const CurlLoan loan;
  Answer answer{options, sink};
  CURLcode code = CURLE_OK;
  std::string problem;
  {
    CurlHandle handle(loan.get());
    set_limits(handle, request, options.timeout_s);
    handle.set_target(request.url, request.ca_file);
    handle.set_receiver({&answer, &on_header, &on_data, &on_progress});
    for (const std::string& line : request.headers) handle.add_header(line);
    if (options.offset > 0) {
      handle.add_header(fmt::format("Range: bytes={}-", options.offset));
      if (!options.version.empty()) handle.add_header("If-Range: " + options.version);
    }
    code = handle.perform();
    problem = handle.problem(code);
  }
  if (answer.error) std::rethrow_exception(answer.error);
  FetchOutcome outcome;
  if (answer.misplaced) {
    outcome = {State::kFailed, "the server sends another range than the one asked for"};
  } else if (answer.status != 0 && !answer.is_good() && code != CURLE_ABORTED_BY_CALLBACK &&
             code != CURLE_TOO_MANY_REDIRECTS && code != CURLE_UNSUPPORTED_PROTOCOL && answer.status >= 300) {
    outcome = judged(answer);
    if (answer.status == 416 && options.offset > 0) sink.begin(0);
  } else if (code != CURLE_OK) {
    outcome = judged(code, problem, options);
  } else if (!answer.began) {
    sink.begin(answer.status == 206 ? options.offset : 0);  // an empty file
  }
  outcome.version = !answer.version.empty() ? answer.version : answer.modified;
  return outcome;
}

}  // namespace tycho
