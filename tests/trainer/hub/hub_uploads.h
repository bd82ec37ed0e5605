// Answers of the stand-in hub to pushes: preupload, the store of large files, commits.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/hub/hub_server.h"
#include "trainer/base/json.h"

namespace tycho::testing {

/// Answers all calls of a HubServer that write. Tests that set faults of the server set these first.
class HubUploads {
 public:
  using Fault = HubServer::Fault;

  explicit HubUploads(HubServer& server);
  /// Looked at before each call to either host.
  void set_fault(Fault at_hub, Fault at_second_host = {});
  /// Does what a call to the hub asks for. Called while the server answers.
  std::optional<ServerReply> answer(const SeenRequest& request) { return at_hub(request); }
  /// All calls: host, method, path, token, type and body, as push.json has them.
  Json calls() const;
  /// How many calls had this in "METHOD path".
  int count(const std::string& words) const;

  std::string token = "hf_atokenoftests";
  bool may_write = true, may_create = true;
  size_t basic_bytes = 100, chunk_bytes = 64;  // larger files go in parts
  std::map<std::string, std::string> objects;  // of the store, by SHA-256

 private:
  std::optional<ServerReply> at_hub(const SeenRequest& request);
  std::optional<ServerReply> at_second_host(const SeenRequest& request);
  ServerReply answer_write(const std::string& path, const Json& body);
  ServerReply create(const Json& body);
  ServerReply batch(const Json& body);
  ServerReply preupload(const std::string& repository, const Json& body);
  ServerReply commit(const std::string& repository, const std::string& branch, const Json& lines);
  void note(const std::string& host, const SeenRequest& request);

  HubServer& server_;
  mutable std::mutex calls_mutex_;
  Json calls_ = Json::array();
  std::map<std::string, std::map<int, std::string>> parts_;  // of one upload: hash and signature
  std::map<std::string, int> num_uploads_;                   // that were begun, by hash
  int num_commits_ = 0;
};

}  // namespace tycho::testing
