// What the kernel of a program gets by value. Host code and the text for NVRTC share it, so it has plain
// types and includes nothing.
#pragma once

namespace tycho {

/// Position of the weights in their parameter: ParamRuns.
struct GpuRuns {
  long long first, row, whole_row, here[4], there[4];
};

/// Element (r, i) of an array is data[r * row_step + i]; of one that serves whole rows, data[r * row_step].
struct GpuArrayMemory {
  void* data;
  long long row_step;
};

/// The arguments of a run begin with this; the memory of each array follows, then the constants.
struct GpuRun {
  long long rows, dim;
  unsigned long long key, step;  // of stochastic rounding
  GpuRuns place;
  float* master;    // of the weights
  long long packs;  // 1: every array may be moved four elements at a time
};

}  // namespace tycho
