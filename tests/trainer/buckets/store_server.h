// Parts that the stand-ins for stores share: an address, counters, faults on command.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/trainer/data/storage/http_server.h"

namespace tycho::testing {

/// Fault of one request.
enum class StoreFault {
  kNone,
  kDropBefore,   // the connection ends, nothing was done
  kDropAfter,    // it was done, and the connection ends
  kErrorBefore,  // 500, nothing was done
  kErrorAfter,   // 500, and it was done
  kSlowDown,     // 503
  kCut           // the answer ends in its middle
};

/// Answers one request at a time. A derived class calls start() at the end of its constructor and stop() at
/// the beginning of its destructor.
class StoreServer {
 public:
  virtual ~StoreServer() = default;
  std::string url() const { return http_->url(); }
  /// Called for each request with its number; may end the process that sent it.
  std::function<StoreFault(int)> fault;
  /// Called after each request that was done.
  std::function<void(const SeenRequest&, const ServerReply&)> answered;
  /// Number of requests, of parts that were stored, and of requests that were answered with 501.
  int num_requests() const;
  int num_parts() const;
  int num_unknown() const;
  /// Objects a page of a listing.
  size_t page = 7;

 protected:
  using Query = std::map<std::string, std::string>;
  void start();
  void stop() { http_.reset(); }
  /// Does a request. `path` and `query` are decoded. Called with the lock held.
  virtual ServerReply act(const SeenRequest& request, const std::string& path, const Query& query) = 0;
  virtual ServerReply error(int status, const std::string& code) const = 0;
  static std::string header_of(const SeenRequest& request, const char* name);
  static ServerReply good(const std::string& body = "", std::vector<std::string> headers = {},
                          int status = 200);
  static std::string time_text(double time_s, const char* form);
  static double now_s();

  mutable std::mutex mutex_;
  int num_parts_ = 0;

 private:
  ServerReply answer(const SeenRequest& request);

  int num_requests_ = 0, num_unknown_ = 0;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace tycho::testing
