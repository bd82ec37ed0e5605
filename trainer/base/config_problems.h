// Collects the problems of a config: every rule reports here, so that users see all problems at once.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "trainer/base/duration.h"

namespace tycho {

struct ConfigProblem {
  std::string path;     // dotted, list items from 1: "model.heads", "optimizer.betas[2]"
  std::string message;  // what is wrong and what to write: "6 is not a multiple of kv_heads = 4"
};

class ConfigProblems {
 public:
  template <class... Args>
  void add(std::string path, fmt::format_string<Args...> format, Args&&... args) {
    all_.push_back({std::move(path), fmt::format(format, std::forward<Args>(args)...)});
  }
  void add_all(const std::vector<ConfigProblem>& problems);
  /// Reports a size above `limit`: its products would not fit into 64 bits, or its plan into memory.
  void at_most(const char* path, double value, double limit);
  /// Reports a key that is set but has no effect, since someone meant it. `when` says when it has none.
  void idle(const std::string& path, bool set, bool used, const char* when);
  /// Reports a length that is a share of the run larger than the whole run.
  void within_run(const std::string& path, const Duration& length);
  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  std::vector<ConfigProblem> take() { return std::move(all_); }

 private:
  std::vector<ConfigProblem> all_;
};

}  // namespace tycho
