// Numbers of this machine under the names that W&B's own client gives them.
#pragma once
#include <string>
#include <vector>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/gpu_use.h"
#include "trainer/metrics/machine_use.h"

namespace tycho {

/// Returns names, without W&B's prefix "system.", and JSON of what is known. The share of busy processors is
/// that since `before`.
std::vector<NamedText> wandb_machine_items(const MachineUse& before, const MachineUse& now,
                                           const std::vector<GpuUse>& gpus);

/// Reads the machine again and again. Used by one thread.
class WandbMachine {
 public:
  /// Returns the present numbers.
  std::vector<NamedText> sample();

 private:
  MachineUse before_;
};

}  // namespace tycho
