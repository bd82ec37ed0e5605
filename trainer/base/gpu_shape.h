// Properties of a GPU that plans and limits depend on besides its memory.
#pragma once

namespace tycho {

struct GpuShape {
  int num_sms = 0;             // 0: unknown
  int compute_capability = 0;  // 90 for 9.0; 0: unknown
};

}  // namespace tycho
