// Configuration of checkpoints.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

enum class CheckpointState { kSharded, kFull };
constexpr EnumNames<CheckpointState, 2> enum_names(CheckpointState) {
  return {{{"sharded", CheckpointState::kSharded}, {"full", CheckpointState::kFull}}};
}

struct CheckpointConfig {
  Duration every = {0.1, DurationUnit::kFraction};
  int64_t keep = 3;
  bool async = true;
  CheckpointState state = CheckpointState::kSharded;
  Duration max_lost = {600, DurationUnit::kSecond};
  std::string remote;
  int64_t remote_max_lost = 0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every, "Save whenever this much training is done, and at the end.", units("ba tok sp dur"),
      positive);
    v("keep", keep, "Newest checkpoints to keep; 0 keeps all.", at_least(0));
    v("async", async, "Write from a copy in memory while training continues.");
    v("state", state,
      "When ranks share the parameters: each writes a file of its own, or rank 0 joins these files into one "
      "with whole tensors before it commits, which takes twice the space meanwhile.");
    v("max_lost", max_lost,
      "How long training continues while checkpoints cannot be written, with a warning at every step and "
      "further tries; then the run ends with exit code 15.",
      units("s m h"), at_least(0));
    v("remote", remote,
      "Place in a store of objects to which every checkpoint is uploaded while training continues, such as "
      "s3://BUCKET/{run_name}; file:///FOLDER for a mounted file system. {run_name} is replaced by the run's "
      "name.");
    v("remote_max_lost", remote_max_lost,
      "Most checkpoints in a row that may wait for their upload; with more, the run ends with exit code 15. "
      "0: "
      "a store that cannot be reached never ends a run.",
      at_least(0));
  }
};

class ConfigProblems;
/// Reports a place to which nothing can be uploaded.
void check_checkpoints(const CheckpointConfig& config, ConfigProblems& problems);
/// Returns ckpt.remote with {run_name} replaced; "" for none.
std::string remote_place(const CheckpointConfig& config, const std::string& run_name);

/// Returns true when the text can be the tag of a checkpoint. A text with "/" is a path.
inline bool is_tag(const std::string& text) { return text.find('/') == std::string::npos; }

}  // namespace tycho
