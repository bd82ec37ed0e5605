// One thread for each connection; enough for tests.
#include "tests/trainer/data/storage/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "trainer/base/hash.h"

namespace tycho::testing {
namespace {

bool send_all(int connection, const char* data, size_t num_bytes) {
  while (num_bytes > 0) {
    const ssize_t n = ::send(connection, data, num_bytes, MSG_NOSIGNAL);
    if (n <= 0) return false;
    data += n, num_bytes -= static_cast<size_t>(n);
  }
  return true;
}

/// Adds what has come; false when the connection ends.
bool read_more(int connection, const std::atomic<bool>& stopping, std::string& text) {
  while (!stopping) {
    pollfd waiting{connection, POLLIN, 0};
    if (::poll(&waiting, 1, 20) == 0) continue;
    char piece[4096];
    const ssize_t n = ::recv(connection, piece, sizeof piece, 0);
    if (n > 0) text.append(piece, static_cast<size_t>(n));
    return n > 0;
  }
  return false;
}

/// A request with its body; nothing when the connection ends.
std::optional<SeenRequest> read_request(int connection, const std::atomic<bool>& stopping) {
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos)
    if (!read_more(connection, stopping, head)) return std::nullopt;
  const size_t head_end = head.find("\r\n\r\n") + 4;
  std::string body = head.substr(head_end);
  head.resize(head_end);
  std::istringstream lines(head);
  SeenRequest request;
  std::string line;
  lines >> request.method >> request.path;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.size() > 1) {
    const size_t colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
  }
  const auto length = request.headers.find("content-length");
  const size_t num_bytes =
      length == request.headers.end() ? 0 : std::strtoull(length->second.c_str(), nullptr, 10);
  while (body.size() < num_bytes)
    if (!read_more(connection, stopping, body)) return std::nullopt;
  request.body = std::move(body);
  return request;
}

}  // namespace

HttpServer::HttpServer(std::string folder) : folder_(std::move(folder)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::listen(listener_, 64);
  socklen_t size = sizeof address;
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] {
    while (!stopping_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 20) != 1) continue;
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      const int at_once = 1;  // or a body waits 40 ms for the word that the head has come
      ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
      const std::lock_guard lock(mutex_);
      ++num_connections_;
      connections_.emplace_back([this, connection] { serve(connection); });
    }
  });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  acceptor_.join();
  connections_.clear();
  ::close(listener_);
}

std::string HttpServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void HttpServer::set_fault(Fault fault) {
  const std::lock_guard lock(mutex_);
  fault_ = std::move(fault);
}

std::vector<SeenRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int HttpServer::count(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(requests_.begin(), requests_.end(), [&](const SeenRequest& request) {
    return request.path.substr(0, request.path.find('?')) == path;
  }));
}

void HttpServer::serve(int connection) {
  while (const std::optional<SeenRequest> request = read_request(connection, stopping_)) {
    const ServerReply reply = answer(*request);
    if (reply.drop) break;
    std::string head =
        fmt::format("HTTP/1.1 {} Status\r\nContent-Length: {}\r\n", reply.status, reply.body.size());
    for (const std::string& line : reply.headers) head += line + "\r\n";
    head += "\r\n";
    if (!send_all(connection, head.data(), head.size())) break;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(reply.hang_s);
    while (!stopping_ && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (request->method == "HEAD") continue;
    const size_t sent = reply.cut_at < 0 ? reply.body.size() : static_cast<size_t>(reply.cut_at);
    if (!send_all(connection, reply.body.data(), sent) || reply.cut_at >= 0) break;
  }
  ::close(connection);
}

ServerReply HttpServer::answer(const SeenRequest& request) {
  Fault fault;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    fault = fault_;
  }
  ServerReply reply;
  if (fault)
    if (std::optional<ServerReply> given = fault(request)) reply = *given;
  if (reply.is_whole || reply.drop || reply.status != 200 || !reply.body.empty()) return reply;
  const std::string path = folder_ + request.path.substr(0, request.path.find('?'));
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) return {404, "not here"};
  reply.body.assign(std::istreambuf_iterator<char>(file), {});
  const std::string tag = "\"" + hash_hex(reply.body) + "\"";
  reply.headers.push_back("ETag: " + tag);
  const auto range = request.headers.find("range");
  const auto if_range = request.headers.find("if-range");
  if (!reply.ranges || range == request.headers.end() ||
      (if_range != request.headers.end() && if_range->second != tag))
    return reply;
  const auto begin = std::strtoull(range->second.c_str() + 6, nullptr, 10);
  if (begin >= reply.body.size()) return {416, "no such range"};
  reply.headers.push_back(
      fmt::format("Content-Range: bytes {}-{}/{}", begin, reply.body.size() - 1, reply.body.size()));
  reply.body.erase(0, begin);
  reply.status = 206;
  return reply;
}

}  // namespace tycho::testing
