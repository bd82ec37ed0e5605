// Faults come before or after the work of a request.
#include "tests/trainer/buckets/store_server.h"

#include <chrono>
#include <cstdlib>
#include <ctime>

namespace tycho::testing {
namespace {

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
    i += 2;
  }
  return out;
}

}  // namespace

void StoreServer::start() {
  http_ = std::make_unique<HttpServer>("/nonexistent");
  http_->set_fault([this](const SeenRequest& request) { return answer(request); });
}

int StoreServer::num_requests() const {
  const std::lock_guard lock(mutex_);
  return num_requests_;
}

int StoreServer::num_parts() const {
  const std::lock_guard lock(mutex_);
  return num_parts_;
}

int StoreServer::num_unknown() const {
  const std::lock_guard lock(mutex_);
  return num_unknown_;
}

std::string StoreServer::header_of(const SeenRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string() : found->second;
}

ServerReply StoreServer::good(const std::string& body, std::vector<std::string> headers, int status) {
  return {.status = status, .body = body, .headers = std::move(headers), .is_whole = true};
}

std::string StoreServer::time_text(double time_s, const char* form) {
  const auto seconds = static_cast<std::time_t>(time_s);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, form, &parts);
  return text;
}

double StoreServer::now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ServerReply StoreServer::answer(const SeenRequest& request) {
  const std::lock_guard lock(mutex_);
  const StoreFault wrong = fault ? fault(num_requests_) : StoreFault::kNone;
  ++num_requests_;
  if (wrong == StoreFault::kDropBefore) return {.drop = true};
  if (wrong == StoreFault::kErrorBefore) return error(500, "InternalError");
  if (wrong == StoreFault::kSlowDown) return error(503, "SlowDown");
  const size_t mark = request.path.find('?');
  const std::string path = decoded(request.path.substr(0, mark));
  Query query;
  std::string rest = mark == std::string::npos ? "" : request.path.substr(mark + 1);
  while (!rest.empty()) {
    const std::string pair = rest.substr(0, rest.find('&'));
    rest.erase(0, pair.size() + 1);
    const size_t equals = pair.find('=');
    query[decoded(pair.substr(0, equals))] = decoded(pair.substr(equals + 1));
  }
  ServerReply reply = act(request, path, query);
  if (reply.status == 501) ++num_unknown_;
  if (answered) answered(request, reply);
  reply.headers.push_back("Date: " + time_text(now_s(), "%a, %d %b %Y %H:%M:%S GMT"));
  if (wrong == StoreFault::kDropAfter) return {.drop = true};
  if (wrong == StoreFault::kErrorAfter) return error(500, "InternalError");
  if (wrong == StoreFault::kCut) {
    if (reply.body.empty() || request.method == "HEAD") return {.drop = true};
    reply.cut_at = static_cast<int64_t>(reply.body.size() / 2);
  }
  return reply;
}

}  // namespace tycho::testing
