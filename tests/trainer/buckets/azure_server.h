// A stand-in for Azure's Blob storage in memory: the requests of Tycho's uploads, and 501 for every other
// one.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/trainer/buckets/store_server.h"

namespace tycho::testing {

/// Takes the SAS "sv=2021&sig=sas-of-the-test" and the token "token-of-the-test". The container is
/// "container" of the account "account".
class AzureServer final : public StoreServer {
 public:
  AzureServer() { start(); }
  ~AzureServer() override { stop(); }
  /// Number of blobs' names with blocks that are in no blob.
  size_t num_unfinished() const;
  /// Forgets these blocks, as Azure does after a week.
  void forget_blocks();

 private:
  struct Blob {
    std::string bytes, md5, parts_digest;
    int version = 0;
  };
  ServerReply act(const SeenRequest& request, const std::string& path, const Query& query) override;
  ServerReply error(int status, const std::string& code) const override;
  ServerReply act_on(const SeenRequest& request, const std::string& key, const Query& query);
  ServerReply list(const Query& query) const;
  ServerReply put_list(const SeenRequest& request, const std::string& key);
  ServerReply get(const SeenRequest& request, const std::string& key) const;

  std::map<std::string, Blob> blobs_;
  std::map<std::string, std::map<std::string, std::string>> blocks_;     // of no blob, by name and id
  std::map<std::string, std::map<std::string, std::string>> committed_;  // of the blob
  int num_versions_ = 0;
};

}  // namespace tycho::testing
