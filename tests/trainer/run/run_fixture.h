// What tests of whole runs share: a tiny data set, a tiny recipe, and a run of it in this process.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/recipe/train_config.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {

class RunTest : public testing::Test {
 protected:
  RunTest();

  /// Writes a split of random samples whose tokens are below `vocab`, as MDS.
  void write_data(int64_t num_samples, int64_t seq_len, int32_t vocab, const std::string& split = "train");
  /// What the host asks for config_.
  RunRequest request(const std::string& until = "") const;
  /// Runs config_ to its end, to `until` or a stop; standard output is thrown away. Returns the exit code.
  int run(const std::string& until = "");
  /// The Error of a run that fails; the test fails when it does not.
  Error run_error();
  /// One object per line of <run>/<name>.
  std::vector<Json> lines(const std::string& name) const;
  /// Losses by step, from metrics.jsonl: later records replace earlier ones.
  std::map<int64_t, double> losses() const;
  /// Bytes of every tensor of the newest checkpoint, by name.
  std::map<std::string, std::string> newest_tensors() const { return tensors_of(run_dir()); }
  /// Of a checkpoint, or the newest of a run.
  static std::map<std::string, std::string> tensors_of(const std::string& path);
  std::string run_dir() const { return config_.run_dir; }

  TempDir dir_;
  CallbackSource* callbacks_ = nullptr;  // of the next run
  TrainConfig config_;
  std::atomic<int> stop_ = 0;
};

}  // namespace tycho
