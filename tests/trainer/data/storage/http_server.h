// A web server of a folder for tests, which can be told to fail.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tycho::testing {

struct SeenRequest {
  std::string path;                            // as it was sent, with its query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string method = "GET", body = "";
};

/// What is sent in place of the file.
struct ServerReply {
  int status = 200;
  std::string body;
  std::vector<std::string> headers;
  int64_t cut_at = -1;    // the connection ends after so many bytes of the body
  double hang_s = 0;      // before the body
  bool ranges = true;     // whether the body of 200 is the file, cut as Range says
  bool is_whole = false;  // sent as it is, also when it is 200 without a body
  bool drop = false;      // the connection ends without an answer
};

/// On a port of 127.0.0.1, with ETag, Range and If-Range. Ends with the object.
class HttpServer {
 public:
  /// Called for each request, from any thread; nothing: the file is sent.
  using Fault = std::function<std::optional<ServerReply>(const SeenRequest&)>;

  explicit HttpServer(std::string folder);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  std::string url() const;
  void set_fault(Fault fault);
  /// All requests so far.
  std::vector<SeenRequest> requests() const;
  /// How many of them asked for this path.
  int count(const std::string& path) const;
  /// How many connections there have been.
  int num_connections() const { return num_connections_; }

 private:
  void serve(int connection);
  ServerReply answer(const SeenRequest& request);

  std::string folder_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> num_connections_ = 0;
  mutable std::mutex mutex_;
  Fault fault_;
  std::vector<SeenRequest> requests_;
  std::vector<std::jthread> connections_;
  std::jthread acceptor_;
};

}  // namespace tycho::testing
