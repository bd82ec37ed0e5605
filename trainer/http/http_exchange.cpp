// Performs a request with a borrowed handle and keeps the answer in memory.
#include "trainer/http/http_exchange.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "trainer/base/error.h"
#include "trainer/http/curl_handle.h"
#include "trainer/http/curl_loan.h"

namespace tycho {
namespace {

/// An answer while it arrives.
struct Arriving {
  HttpAnswer& answer;
  size_t most_body_bytes;
  std::stop_token stop;
  bool too_long = false;
};

size_t take_header(char* data, size_t size, size_t count, void* context) {
  const std::string_view line(data, size * count);
  HttpAnswer& answer = static_cast<Arriving*>(context)->answer;
  if (line.starts_with("HTTP/")) {  // first line of an answer; a proxy's own may precede it
    answer.headers.clear();
    answer.wait_s = 0;
  } else if (const auto [name, value] = split_header(line); !name.empty()) {
    answer.headers.emplace_back(name, value);
  }
  if (const auto wait_s = retry_after_s(line)) answer.wait_s = *wait_s;
  return line.size();
}

size_t take_body(char* data, size_t size, size_t count, void* context) {
  auto& arriving = *static_cast<Arriving*>(context);
  const size_t num_bytes = size * count;
  arriving.too_long = arriving.answer.body.size() + num_bytes > arriving.most_body_bytes;
  if (arriving.too_long) return 0;
  arriving.answer.body.append(data, num_bytes);
  return num_bytes;
}

int look_at_stop(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Arriving*>(context)->stop.stop_requested() ? 1 : 0;
}

/// The part of a file that a request sends.
class SentFile {
 public:
  explicit SentFile(const HttpCall& call)
      : file_(::open(call.body_file.c_str(), O_RDONLY | O_CLOEXEC)),
        begin_(call.body_begin),
        end_(call.body_end),
        at_(call.body_begin) {
    if (file_ < 0) fail(ExitCode::kUnusable, "[http] cannot read {}", call.body_file);
  }
  ~SentFile() { ::close(file_); }
  SentFile(const SentFile&) = delete;

  bool is_cut() const { return is_cut_; }

  static size_t give(char* to, size_t size, size_t count, void* context) {
    auto& sent = *static_cast<SentFile*>(context);
    const auto wanted = std::min(static_cast<int64_t>(size * count), sent.end_ - sent.at_);
    if (wanted == 0) return 0;
    ssize_t n = 0;
    do n = ::pread(sent.file_, to, static_cast<size_t>(wanted), sent.at_);
    while (n < 0 && errno == EINTR);
    sent.is_cut_ = n <= 0;
    if (sent.is_cut_) return CURL_READFUNC_ABORT;
    sent.at_ += n;
    return static_cast<size_t>(n);
  }
  /// Goes back when a kept connection turns out to be closed and the request is sent over a new one.
  static int seek(void* context, curl_off_t offset, int origin) {
    auto& sent = *static_cast<SentFile*>(context);
    if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    sent.at_ = sent.begin_ + offset;
    return CURL_SEEKFUNC_OK;
  }

 private:
  int file_;
  int64_t begin_, end_, at_;
  bool is_cut_ = false;
};

void set_body(CurlHandle& handle, const HttpCall& call, SentFile* sent) {
  handle.set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
  handle.add_header("Expect:");  // or a large body would wait for a server's word first
  if (sent == nullptr) {
    handle.set(CURLOPT_POSTFIELDS, call.body.c_str());
    return handle.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
  }
  handle.set(CURLOPT_UPLOAD, 1L);
  handle.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(call.body_end - call.body_begin));
  handle.set(CURLOPT_READFUNCTION, &SentFile::give);
  handle.set(CURLOPT_READDATA, static_cast<void*>(sent));
  handle.set(CURLOPT_SEEKFUNCTION, &SentFile::seek);
  handle.set(CURLOPT_SEEKDATA, static_cast<void*>(sent));
}

void set_request(CurlHandle& handle, const HttpCall& call, SentFile* sent) {
  const double connect_s = call.timeout_s > 0 ? call.timeout_s : call.stall_s;
  handle.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_s * 1000));
  handle.set(CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout_s * 1000));
  if (call.stall_s > 0) handle.set_longest_stall(call.stall_s);
  handle.set(CURLOPT_FOLLOWLOCATION, 0L);
  handle.set_target(call.url, call.ca_file);
  if (call.is_direct) handle.set(CURLOPT_PROXY, "");
  for (const std::string& line : call.headers) handle.add_header(line);
  if (call.method == "GET") return;
  if (call.method == "HEAD") return handle.set(CURLOPT_NOBODY, 1L);
  set_body(handle, call, sent);
}

}  // namespace

std::string HttpAnswer::header(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? "" : found->second;
}

bool HttpAnswer::may_pass() const {
  return (status == 0 && !is_untrusted) || status == 408 || status == 425 || status == 429 ||
         (status >= 500 && status != 501);
}

HttpAnswer http_exchange(const HttpCall& call, std::stop_token stop) {
  HttpAnswer answer;
  if (stop.stop_requested()) {
    answer.problem = "stopped";
    return answer;
  }
  const CurlLoan loan;
  Arriving arriving{answer, call.most_body_bytes, stop};
  CurlHandle handle(loan.get());
  const auto sent = call.body_file.empty() ? nullptr : std::make_unique<SentFile>(call);
  set_request(handle, call, sent.get());
  handle.set_receiver({&arriving, &take_header, &take_body, &look_at_stop});
  const CURLcode code = handle.perform();
  if (code == CURLE_OK) {
    long status = 0;
    curl_library().easy_getinfo(loan.get(), CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    return answer;
  }
  answer = {};
  if (sent != nullptr && sent->is_cut())
    answer.problem = call.body_file + " cannot be read to its end";
  else if (code == CURLE_ABORTED_BY_CALLBACK)
    answer.problem = "stopped";
  else if (code == CURLE_OPERATION_TIMEDOUT)
    answer.problem = fmt::format("no answer in {:g} s", call.stall_s > 0 ? call.stall_s : call.timeout_s);
  else if (arriving.too_long)
    answer.problem = fmt::format("the answer is longer than {} bytes", call.most_body_bytes);
  else
    answer.problem = handle.problem(code);
  answer.is_untrusted = is_untrusted(code);
  return answer;
}

}  // namespace tycho
