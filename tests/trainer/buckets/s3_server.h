// A stand-in for S3 in memory: the requests of Tycho's uploads, and 501 for every other one.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
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

class S3Server {
 public:
  S3Server();
  std::string url() const { return http_.url(); }
  /// Called for each request with its number; may end the process that sent it.
  std::function<StoreFault(int)> fault;
  /// Number of requests, of parts that were stored, and of requests that were answered with 501.
  int num_requests() const;
  int num_parts() const;
  int num_unknown() const;
  /// Number of unfinished uploads.
  size_t num_unfinished() const;
  /// Objects a page of a listing.
  size_t page = 7;
  bool ignores_conditions = false;

 private:
  struct Upload {
    std::string key;
    std::map<int, std::string> parts;
    double begun_s;
  };
  struct Object {
    std::string bytes, tag;
  };
  using Query = std::map<std::string, std::string>;

  ServerReply answer(const SeenRequest& request);
  ServerReply act(const SeenRequest& request, const std::string& key, const Query& query);
  ServerReply list(const Query& query) const;
  ServerReply list_uploads(const Query& query) const;
  ServerReply list_parts(const Query& query) const;
  ServerReply remove_many(const std::string& body);
  ServerReply complete(const std::string& key, const Query& query, const std::string& body);
  ServerReply put(const SeenRequest& request, const std::string& key, const Query& query);
  ServerReply get(const SeenRequest& request, const std::string& key) const;

  mutable std::mutex mutex_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  int num_requests_ = 0, num_parts_ = 0, num_unknown_ = 0, num_uploads_ = 0;
  HttpServer http_{"/nonexistent"};  // last: its threads use the others
};

}  // namespace tycho::testing
