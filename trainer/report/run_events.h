// Starts, time and texts of a run, from events.jsonl. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Returns a whole number of a record; 0 when it is none.
int64_t count_in(const Json& record, const char* key);
/// Returns a text of a record; "" when it is none.
std::string text_in(const Json& record, const char* key);

/// Gathers the events of a run in the order of their file.
class RunEvents {
 public:
  explicit RunEvents(std::string folder) : folder_(std::move(folder)) {}
  void take(const Json& record);
  /// Extends the time of an attempt to a record of any file.
  void see(const Json& record);
  /// Notes that an attempt did a step.
  void has_trained(int64_t attempt);

  /// Returns the last steps before those that attempts trained anew, by attempt; only of attempts that
  /// trained and recorded where they began.
  std::map<int64_t, int64_t> kept_steps() const;
  /// Returns the first step that an attempt recorded for its start; `otherwise` when it did not.
  int64_t first_step_of(int64_t attempt, int64_t otherwise) const;
  /// Returns the seconds from the first start to a time in an attempt, without the pauses between attempts.
  double trained_s(double time, int64_t attempt) const;
  /// Writes what the events say into a summary.
  void summarize(RunSummary& run) const;
  int64_t first_step() const { return first_step_; }
  bool is_empty() const { return num_attempts_ == 0; }

 private:
  /// One start of the run.
  struct Start {
    int64_t attempt = 0;
    Json facts;  // facts of run_start
    std::string end;
    bool has_trained = false;
  };

  void take_text(const Json& record, const std::string& kind);
  void take_parent(const std::string& path);

  std::string folder_, parent_;
  int64_t num_attempts_ = 0, first_step_ = 0, checkpoint_bytes_ = 0;
  std::vector<Start> starts_;
  std::map<int64_t, size_t> attempts_;                  // number of an attempt -> its index in starts_
  std::map<int64_t, std::pair<double, double>> spans_;  // of each attempt, in seconds since 1970
  std::vector<RecordedText> texts_;
  std::optional<std::string> evaluated_weights_;
};

}  // namespace tycho
