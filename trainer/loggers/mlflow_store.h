// Stores runs of MLflow: on a tracking server, or in a folder of its file store.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/metrics/named_table.h"

namespace tycho {

using MlflowTexts = std::vector<std::pair<std::string, std::string>>;

/// Returns a name that MLflow accepts: letters, digits and _-.:/ and spaces; others become "_". A path
/// without empty parts, "." or "..". At most 250 bytes.
std::string mlflow_key(std::string_view name);

struct MlflowRun {
  std::string experiment, name, user;
  int64_t start_ms = 0;  // since 1970
  MlflowTexts params, tags;
};

struct MlflowPoint {
  std::string key;  // a result of key_of
  double value = 0;
  int64_t time_ms = 0, step = 0;
};

/// The tables of a run, of each name the newest one, in the form in which MLflow's own log_table writes them
/// into a tag.
class MlflowTables {
 public:
  static constexpr const char* kTag = "mlflow.loggedArtifacts";

  /// Reads the tag; "" when there is none.
  void read(const std::string& tag);
  /// Adds a table of a step. Returns the artifact's path: "tables/icl/words/0-shot/step-000000500.json".
  std::string add(const std::string& name, int64_t step);
  /// Returns the tag, in at most 5,000 bytes, the limit of servers.
  std::string tag() const;

 private:
  std::map<std::string, std::string> paths_;  // by folder
};

/// Values of mlflow/protos/service.proto.
enum class MlflowStatus { kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5 };

/// Stores runs of MLflow. Used by one thread at a time. Throws Error (kStorage) without secrets when a call
/// fails, after repeating it where that may help.
class MlflowStore {
 public:
  virtual ~MlflowStore() = default;
  /// Returns the key of a metric, parameter or tag of this name.
  virtual std::string key_of(std::string_view name) const { return mlflow_key(name); }
  /// Creates a run, and its experiment when there is none of that name. Returns the run's id.
  virtual std::string create_run(const MlflowRun& run) = 0;
  /// Reopens the run. Returns the last step of each metric.
  virtual std::map<std::string, int64_t> resume_run(const std::string& id) = 0;
  /// Returns true if the run has not ended, as far as the store knows. Changes nothing.
  virtual bool is_running(const std::string& id) = 0;
  /// Adds the points of a metric, in the order of their steps.
  virtual void add_points(const std::string& id, const std::vector<MlflowPoint>& points) = 0;
  /// Stores a table of a step as an artifact, and lists the newest tables in the run's tags. When a server's
  /// artifacts are in S3, this machine writes them there; when they cannot be written, the run gets a tag
  /// that says so.
  virtual void add_table(const std::string& id, const NamedTable& table, int64_t step) = 0;
  virtual void end_run(const std::string& id, MlflowStatus status, int64_t end_ms) = 0;
  /// Makes a call that waits for a server throw soon, and all later calls too. Callable from any thread.
  virtual void cancel() {}
};

struct MlflowPatience {
  int start_tries = 3, tries = 10;               // attempts per request, at the start of a run and later
  double first_wait_s = 1, longest_wait_s = 60;  // wait before the next attempt, which doubles
  double timeout_s = 20;
};

/// Opens a tracking server. `url` is "https://host:5000". Signs in with MLFLOW_TRACKING_TOKEN, or
/// MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, if they are set; trusts the certificates of
/// MLFLOW_TRACKING_SERVER_CERT_PATH. Masks their values from here on.
std::unique_ptr<MlflowStore> make_mlflow_server(const std::string& url, const MlflowPatience& patience = {});

/// Opens a folder. `files` must outlive the store. Keys have "." in place of "/", because a file and a folder
/// cannot share a name.
std::unique_ptr<MlflowStore> make_mlflow_folder(const std::string& folder, FileOps& files);

}  // namespace tycho
