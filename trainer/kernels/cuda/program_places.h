// What programs of recipes need of this machine. The emulated GPU of tests has its own.
#pragma once
#include <string>

#include "trainer/kernels/cuda/nvrtc.h"

namespace tycho::cuda {

/// Returns the NVRTC of this process, opened on the first call.
const Nvrtc& own_nvrtc();

/// Returns the user's folder of compiled programs, $XDG_CACHE_HOME/tycho/programs or
/// ~/.cache/tycho/programs; "" where neither variable is set.
std::string program_folder();

}  // namespace tycho::cuda
