// A stand-in for the Hugging Face hub: two hosts, the second of which must never see a token.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/trainer/data/storage/http_server.h"

namespace tycho::testing {

/// A file of the stand-in; a large one is on the second host.
struct ServedFile {
  std::string bytes;
  bool is_large = false;
  std::string git_sha1, sha256, xet_hash;  // computed by HubServer::add, unless given
  int64_t shown_bytes = -1;                // size in listings; -1: the true one
};

/// One repository, "models/a/b" or "datasets/a/b", with one commit, which main and the commit itself name.
struct ServedRepository {
  std::string commit = "0123456789abcdef0123456789abcdef01234567";
  std::map<std::string, ServedFile> files;
  std::map<std::string, std::string> revisions;  // more names, and their commits
  bool is_private = false;
};

/// Serves repositories. Unknown calls are answered with 501 and are problems().
class HubServer {
 public:
  using Fault = std::function<std::optional<ServerReply>(const SeenRequest&)>;

  HubServer();
  ServedRepository& add(const std::string& name) { return repositories_[name]; }
  void add_file(const std::string& repository, const std::string& path, const std::string& bytes,
                bool is_large = false);
  bool has(const std::string& name) const { return repositories_.contains(name); }
  std::string url() const { return hub_.url(); }
  std::string second_url() const { return second_.url(); }
  /// Looked at before each request to the hub, or to the second host.
  void set_faults(Fault at_hub, Fault at_second_host);
  /// Unknown calls, and tokens at the second host.
  std::vector<std::string> problems() const;
  /// All requests: "hub GET /api/... token". Signatures are left out.
  std::vector<std::string> requests() const;
  int num_requests() const { return static_cast<int>(requests().size()); }

  /// Answers 501 and keeps the problem. Called while the server answers.
  ServerReply unknown(const SeenRequest& request);

  std::string token;                         // "" for public repositories
  std::map<std::string, std::string> moved;  // "models/gpt2" and where it is now
  size_t page_entries = 2;                   // number of files and folders of one page of a listing
  int uses_of_address = 1000;                // a signed address is refused after so many requests

 private:
  ServerReply at_hub(const SeenRequest& request);
  ServerReply at_second_host(const SeenRequest& request);
  ServerReply resolve(const std::string& repository, const std::string& rest, const SeenRequest& request);
  ServerReply describe(const std::string& name, const ServedRepository& repository,
                       const std::string& commit);
  /// Lists a folder, where `path` ends with `rest`, "REVISION[/FOLDER]?recursive=...".
  ServerReply list(const ServedRepository& repository, const std::string& path, const std::string& rest);

  mutable std::mutex mutex_;
  std::map<std::string, ServedRepository> repositories_;
  std::map<std::string, int> uses_;  // of signed addresses
  int num_signed_ = 0;
  std::vector<std::string> problems_;
  Fault hub_fault_, second_fault_;
  HttpServer second_, hub_;
};

}  // namespace tycho::testing
