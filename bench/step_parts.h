// Time of a training step, by kind of work.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace tycho {

/// Returns the kind of work of a fused op's range ("tycho::rms_norm") or of a product of ATen: "products",
/// "attention", "classifier", "norms", "activations", "optimizer", or "other ops". Returns "" for a range
/// that is no op.
std::string_view part_of(std::string_view range);

/// Adds up the seconds of the fused ops that this thread calls while it lives, by part. An op within another
/// counts to the outer one. One at a time.
class StepParts {
 public:
  StepParts();
  ~StepParts();
  StepParts(const StepParts&) = delete;
  StepParts& operator=(const StepParts&) = delete;

  const std::map<std::string, double>& seconds() const;
  void clear();

 private:
  unsigned long handle_;
};

}  // namespace tycho
