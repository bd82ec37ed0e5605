// The calls of a server of Weights & Biases: GraphQL for runs, the file stream for their numbers. They ask
// for no field and no argument that wandb 0.31.0 does not ask for, since another server may know no more.
#pragma once
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/http/http_exchange.h"
#include "trainer/loggers/wandb_artifact.h"
#include "trainer/loggers/wandb_entry.h"
#include "trainer/loggers/wandb_file.h"
#include "trainer/loggers/wandb_settings.h"

namespace tycho {

/// A run as a server has it: its lines, which have numbers from 0, and the ends of its files.
struct WandbRemoteRun {
  std::string entity, project;
  int64_t history_lines = 0, event_lines = 0, log_lines = 0;
  std::optional<int64_t> last_step;    // of the history; nullopt when the server does not tell
  std::optional<double> last_event_s;  // time of the newest numbers of the machine
  Json summary = json_object();
};

/// An address at which a file of a run can be written for a limited time.
struct WandbUploadTarget {
  std::string name, url;
  std::vector<std::string> headers;
};

/// Sends each request once. Throws Error when that fails: kStorage when it may help to ask again, kUnusable
/// when the server refuses. Used by one thread, except cancel().
class WandbServer {
 public:
  WandbServer(WandbSettings settings, double timeout_s)
      : settings_(std::move(settings)), timeout_s_(timeout_s) {}

  /// Creates the run, or opens it again.
  WandbRemoteRun open(const WandbRun& run);
  /// Posts to the file stream; `body` is {"files": {...}}, or {} as a sign of life.
  void stream(const Json& body);
  /// Asks where files are to be written.
  std::vector<WandbUploadTarget> targets(const std::vector<std::string>& names);
  void put(const WandbUploadTarget& target, std::string bytes);
  /// Shows a message to the people who follow the run.
  void alert(const WandbAlertEntry& alert);
  /// Stores a version of an artifact; one that the server has already stays as it is.
  void store(const WandbArtifact& artifact);

  /// Returns the time that the last answer asked to wait; 0 for none.
  double wait_s() const { return wait_s_; }
  /// Returns true when the last request failed as all would: no answer, or a key that may not do this.
  bool refuses_all() const { return status_ == 0 || status_ == 401 || status_ == 403; }
  /// Returns the address of the run's page, after open().
  std::string page() const { return wandb_run_page(settings_.url, remote_.entity, remote_.project, id_); }
  const std::string& url() const { return settings_.url; }
  /// Makes the running call and all later ones throw soon. Callable from any thread.
  void cancel() { stop_.request_stop(); }

 private:
  Json ask(const char* name, const char* query, const Json& variables);
  HttpAnswer exchanged(HttpCall call);
  [[noreturn]] void refuse(const HttpAnswer& answer, const std::string& what) const;
  std::string read_remote(const WandbRun& run);
  /// Returns the id of a new version; "" when the server has one of this digest.
  std::string create(const WandbArtifact& artifact);

  const WandbSettings settings_;
  const double timeout_s_;
  std::string id_;
  WandbRemoteRun remote_;
  Json remote_config_ = json_object();
  double wait_s_ = 0;
  int status_ = 0;  // of the last answer
  std::stop_source stop_;
};

}  // namespace tycho
