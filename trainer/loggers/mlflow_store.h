// Where runs of MLflow are kept: on a tracking server, or in a folder of its file store.
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

/// A name as MLflow takes it: letters, digits and _-.:/ and spaces; others become "_". A path without empty
/// parts, "." or "..". At most 250 bytes.
std::string mlflow_key(std::string_view name);

struct MlflowRun {
  std::string experiment, name, user;
  int64_t start_ms = 0;  // since 1970
  MlflowTexts params, tags;
};

struct MlflowPoint {
  std::string key;  // as key_of gives it
  double value = 0;
  int64_t time_ms = 0, step = 0;
};

/// Which tables a run has, as MLflow's own log_table says it in a tag: of each name the newest one.
class MlflowTables {
 public:
  static constexpr const char* kTag = "mlflow.loggedArtifacts";

  /// What the tag said, "" for nothing.
  void read(const std::string& tag);
  /// Takes a table of a step. Returns the artifact's path: "tables/icl/words/0-shot/step-000000500.json".
  std::string add(const std::string& name, int64_t step);
  /// What the tag says now, in at most 5,000 bytes: that is what servers take.
  std::string tag() const;

 private:
  std::map<std::string, std::string> paths_;  // by folder
};

/// The numbers are those of mlflow/protos/service.proto.
enum class MlflowStatus { kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5 };

/// One thread at a time calls it. What cannot be done, after tries where they may help, is an Error
/// (kStorage) without secrets.
class MlflowStore {
 public:
  virtual ~MlflowStore() = default;
  /// The key of a metric, parameter or tag of this name.
  virtual std::string key_of(std::string_view name) const { return mlflow_key(name); }
  /// Makes the experiment where there is none of that name. Returns the run's id.
  virtual std::string create_run(const MlflowRun& run) = 0;
  /// Sets the run going again. Returns the last step of each metric.
  virtual std::map<std::string, int64_t> resume_run(const std::string& id) = 0;
  /// The points of a metric in the order of their steps.
  virtual void add_points(const std::string& id, const std::vector<MlflowPoint>& points) = 0;
  /// Keeps a table of a step as an artifact, and says in the run's tags which are its newest tables. Where a
  /// server's artifacts are in S3, this machine writes them there; where they cannot be written, the run gets
  /// a tag that says so.
  virtual void add_table(const std::string& id, const NamedTable& table, int64_t step) = 0;
  virtual void end_run(const std::string& id, MlflowStatus status, int64_t end_ms) = 0;
  /// From any thread: a call that waits for a server throws soon, and so do all later ones.
  virtual void cancel() {}
};

struct MlflowPatience {
  int start_tries = 3, tries = 10;               // of a request, at the start of a run and later
  double first_wait_s = 1, longest_wait_s = 60;  // before the next try: doubles
  double timeout_s = 20;
};

/// `url`: "https://host:5000". Signs in with MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and
/// MLFLOW_TRACKING_PASSWORD, where the environment has them; trusts the certificates of
/// MLFLOW_TRACKING_SERVER_CERT_PATH. Their values are masked from here on.
std::unique_ptr<MlflowStore> make_mlflow_server(const std::string& url, const MlflowPatience& patience = {});

/// `files` outlives it. Keys have "." in place of "/": a file and a folder cannot share a name.
std::unique_ptr<MlflowStore> make_mlflow_folder(const std::string& folder, FileOps& files);

}  // namespace tycho
