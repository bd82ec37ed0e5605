// A stand-in for S3 in memory: the requests of Tycho's uploads, and 501 for every other one.
#pragma once
#include <map>
#include <string>

#include "tests/trainer/buckets/store_server.h"

namespace tycho::testing {

class S3Server final : public StoreServer {
 public:
  S3Server() { start(); }
  ~S3Server() override { stop(); }
  /// Number of unfinished uploads.
  size_t num_unfinished() const;
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

  ServerReply act(const SeenRequest& request, const std::string& path, const Query& query) override;
  ServerReply error(int status, const std::string& code) const override;
  ServerReply act_on(const SeenRequest& request, const std::string& key, const Query& query);
  ServerReply list(const Query& query) const;
  ServerReply list_uploads(const Query& query) const;
  ServerReply list_parts(const Query& query) const;
  ServerReply remove_many(const std::string& body);
  ServerReply complete(const std::string& key, const Query& query, const std::string& body);
  ServerReply put(const SeenRequest& request, const std::string& key, const Query& query);
  ServerReply get(const SeenRequest& request, const std::string& key) const;

  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  int num_uploads_ = 0;
};

}  // namespace tycho::testing
