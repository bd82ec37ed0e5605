// The file store of MLflow: a folder for each experiment, in it one for each run. Written as
// mlflow/store/tracking/file_store.py of MLflow 3.17 reads it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/loggers/mlflow_store.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultExperiment = "Default";

/// Returns a text as YAML, of which JSON is a subset.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string file_url(const std::string& path) {
  return "file://" + percent_encoded(fs::absolute(path).lexically_normal().string());
}

/// Returns the value of a line "key: value" of a meta.yaml, without quotes; "" when there is none. MLflow
/// writes each key on a line of its own.
std::string yaml_value(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ": ")) continue;
    std::string value = line.substr(key.size() + 2);
    if (value.starts_with('"')) {
      const Json json = Json::parse(value, nullptr, false);
      return json.is_string() ? json.get<std::string>() : value;
    }
    if (value.size() < 2 || !value.starts_with('\'')) return value;
    std::string plain;
    for (size_t i = 1; i + 1 < value.size(); ++i) {
      plain += value[i];
      if (value[i] == '\'') ++i;  // written twice
    }
    return plain;
  }
  return "";
}

std::string with_yaml_value(const std::string& text, const std::string& key, const std::string& value) {
  std::istringstream lines(text);
  std::string changed;
  for (std::string line; std::getline(lines, line);)
    changed += (line.starts_with(key + ":") ? key + ": " + value : line) + "\n";
  return changed;
}

/// Returns a number in a form that Python's float() reads.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

/// Returns the step of the last complete line "time value step"; -1 when there is none.
int64_t last_step(const std::string& text) {
  if (text.empty()) return -1;
  const size_t before = text.rfind('\n', text.size() - 2);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t space = text.rfind(' ');
  int64_t step = -1;
  if (space != std::string::npos && space > begin)
    std::from_chars(text.data() + space + 1, text.data() + text.size(), step);
  return step;
}

class MlflowFolder final : public MlflowStore {
 public:
  MlflowFolder(std::string folder, FileOps& files) : root_(std::move(folder)), files_(files) {
    while (root_.size() > 1 && root_.ends_with('/')) root_.pop_back();
  }

  std::string key_of(std::string_view name) const override {
    std::string key = mlflow_key(name);
    std::replace(key.begin(), key.end(), '/', '.');
    return key;
  }

  std::string create_run(const MlflowRun& run) override {
    make_dirs(files_, root_);
    const std::string experiment = experiment_id(run.experiment), id = random_hex(16);
    dir_ = fmt::format("{}/{}/{}", root_, experiment, id);
    for (const char* part : {"metrics", "params", "tags", "artifacts"}) make_dirs(files_, dir_ + "/" + part);
    write_new("tags/mlflow.runName", run.name);
    for (const auto& [key, value] : run.params) write_new("params/" + key, value);
    for (const auto& [key, value] : run.tags) write_new("tags/" + key, value);
    write_durably(
        "meta.yaml",
        fmt::format("artifact_uri: {}\ndeleted_time: null\nend_time: null\nentry_point_name: ''\n"
                    "experiment_id: {}\nlifecycle_stage: active\nrun_id: {}\nrun_name: {}\nrun_uuid: {}\n"
                    "source_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: {}\nstatus: {}\n"
                    "tags: []\nuser_id: {}\n",
                    quoted(file_url(dir_ + "/artifacts")), quoted(experiment), quoted(id), quoted(run.name),
                    quoted(id), run.start_ms, static_cast<int>(MlflowStatus::kRunning), quoted(run.user)));
    return id;
  }

  bool is_running(const std::string& id) override {
    find_run(id);
    return yaml_value(read_file(dir_ + "/meta.yaml"), "status") ==
           fmt::format("{}", static_cast<int>(MlflowStatus::kRunning));
  }

  std::map<std::string, int64_t> resume_run(const std::string& id) override {
    find_run(id);
    std::map<std::string, int64_t> last;
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_ + "/metrics")) {
      std::string text = read_file(entry.path().string());
      // A line that a kill has cut would make the whole metric unreadable.
      if (const size_t end = text.rfind('\n') + 1; end != text.size()) {
        text.resize(end);
        write_file_atomically(files_, entry.path().string(), text);
      }
      last[entry.path().filename().string()] = last_step(text);
    }
    if (const std::string tag = dir_ + "/tags/" + MlflowTables::kTag; fs::exists(tag))
      tables_.read(read_file(tag));
    set_status(MlflowStatus::kRunning, "null");
    return last;
  }

  void add_points(const std::string&, const std::vector<MlflowPoint>& points) override {
    std::map<std::string, std::string> lines;  // file -> text to append
    for (const MlflowPoint& point : points)
      lines[point.key] += fmt::format("{} {} {}\n", point.time_ms, number_text(point.value), point.step);
    for (const auto& [name, text] : lines) {
      const auto file = files_.append(dir_ + "/metrics/" + name);
      file->write(text.data(), text.size());
      file->close();
    }
  }

  void add_table(const std::string&, const NamedTable& table, int64_t step) override {
    const std::string path = "artifacts/" + tables_.add(table.name, step);
    make_dirs(files_, fs::path(dir_ + "/" + path).parent_path().string());
    write_durably(path, split_form(table).dump(-1, ' ', false, Json::error_handler_t::replace));
    write_durably(std::string("tags/") + MlflowTables::kTag, tables_.tag());
  }

  void end_run(const std::string&, MlflowStatus status, int64_t end_ms) override {
    set_status(status, fmt::format("{}", end_ms));
  }

 private:
  /// Sets the folder of a run.
  void find_run(const std::string& id) {
    dir_.clear();
    std::error_code ignored;
    for (const fs::directory_entry& experiment : fs::directory_iterator(root_, ignored))
      if (fs::exists(experiment.path() / id / "meta.yaml")) dir_ = (experiment.path() / id).string();
    if (dir_.empty())
      fail(ExitCode::kStorage, "[mlflow] {} has no run {}; give the folder that the run began in", root_, id);
  }

  /// Writes a file unless it exists. Does not wait for the disk, since a recipe has a hundred keys.
  void write_new(const std::string& name, const std::string& text) {
    if (fs::exists(dir_ + "/" + name)) return;
    const auto file = files_.create(dir_ + "/" + name);
    file->write(text.data(), text.size());
    file->close();
  }

  void write_durably(const std::string& name, const std::string& text) {
    write_file_atomically(files_, dir_ + "/" + name, text);
  }

  void set_status(MlflowStatus status, const std::string& end_time) {
    std::string meta = read_file(dir_ + "/meta.yaml");
    meta = with_yaml_value(meta, "status", fmt::format("{}", static_cast<int>(status)));
    write_durably("meta.yaml", with_yaml_value(meta, "end_time", end_time));
  }

  /// Returns the id of an experiment. Runs that start at the same moment compute the same id for a new one,
  /// and share it.
  std::string experiment_id(const std::string& name) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(root_, ignored)) {
      const fs::path meta = entry.path() / "meta.yaml";
      if (!fs::is_regular_file(meta)) continue;
      const std::string text = read_file(meta.string());
      if (yaml_value(text, "name") == name) return entry.path().filename().string();
    }
    const std::string id =
        name == kDefaultExperiment
            ? "0"
            : fmt::format("{:018}",
                          std::stoull(hash_hex(name).substr(0, 15), nullptr, 16) % 900000000000000000 +
                              100000000000000000);
    const std::string dir = root_ + "/" + id;
    make_dirs(files_, dir);
    write_file_atomically(files_, dir + "/meta.yaml",
                          fmt::format("artifact_location: {}\nexperiment_id: {}\nlifecycle_stage: active\n"
                                      "name: {}\n",
                                      quoted(file_url(dir)), quoted(id), quoted(name)));
    return id;
  }

  std::string root_;
  FileOps& files_;
  std::string dir_;  // folder of the run
  MlflowTables tables_;
};

}  // namespace

std::unique_ptr<MlflowStore> make_mlflow_folder(const std::string& folder, FileOps& files) {
  return std::make_unique<MlflowFolder>(folder, files);
}

}  // namespace tycho
