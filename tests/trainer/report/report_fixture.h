// Folders of runs for tests of tables and pages about them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// A folder that holds folders of runs, and is gone with the test.
class RunFolders {
 public:
  RunFolders() {
    std::string name = (std::filesystem::temp_directory_path() / "tycho-report-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~RunFolders() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  void add(const std::string& run, const std::string& file, const Json& record) const {
    std::filesystem::create_directories(path_ + "/" + run);
    std::ofstream(path_ + "/" + run + "/" + file, std::ios::app) << record.dump() << "\n";
  }
  void add_start(const std::string& run, double time, int64_t attempt, int64_t ranks,
                 int64_t params = 1000) const {
    add(run, "events.jsonl",
        {{"time", time},
         {"attempt", attempt},
         {"kind", "run_start"},
         {"facts",
          {{"run_name", run},
           {"device", "NVIDIA H200"},
           {"num_ranks", ranks},
           {"num_params", params},
           {"planned_memory_bytes", 9000},
           {"total_steps", 8}}}});
  }
  void add_step(const std::string& run, double time, int64_t attempt, int64_t step, double loss,
                double tokens_per_s) const {
    add(run, "metrics.jsonl",
        {{"time", time},
         {"attempt", attempt},
         {"step", step},
         {"tokens", step * 100},
         {"loss", loss},
         {"tokens_per_s", tokens_per_s},
         {"mfu", tokens_per_s / 10000},
         {"step_s", 2},
         {"data_wait_s", 0.5},
         {"memory_bytes", 1000 * step}});
  }
  /// A run of eight steps that ended well.
  void add_run(const std::string& run, int64_t ranks, double step_s, double tokens_per_s) const {
    add_start(run, 1000, 1, ranks);
    for (int64_t step = 1; step <= 8; ++step)
      add_step(run, 1000 + step_s * static_cast<double>(step), 1, step, 4.0 / static_cast<double>(step),
               step < 3 ? 1 : tokens_per_s);
    add(run, "events.jsonl",
        {{"time", 1000 + 8 * step_s}, {"attempt", 1}, {"kind", "run_end"}, {"text", "done"}});
  }

 private:
  std::string path_;
};

}  // namespace tycho
