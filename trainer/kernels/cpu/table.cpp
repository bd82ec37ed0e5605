// The table of one instruction set's kernels.
#include "trainer/kernels/cpu/kernels.h"

#define TYCHO_TEXT_OF(x) #x
#define TYCHO_TEXT(x) TYCHO_TEXT_OF(x)

namespace tycho::TYCHO_ISA {

const KernelTable& table() {
  static constexpr KernelTable kTable{
      .name = "cpu " TYCHO_TEXT(TYCHO_ISA),
      .rms_norm = &rms_norm,
      .rms_norm_backward = &rms_norm_backward,
      .rms_norm_backward_workspace = &rms_norm_backward_workspace,
      .swiglu = &swiglu,
      .swiglu_backward = &swiglu_backward,
      .rope = &rope,
      .embedding = &embedding,
      .embedding_backward = &embedding_backward,
      .embedding_backward_workspace = &embedding_backward_workspace,
      .cross_entropy = &cross_entropy,
      .adamw_step = &adamw_step,
      .sum_of_squares = &sum_of_squares,
      .cast = &cast,
      .add_to_fp32 = &add_to_fp32,
  };
  return kTable;
}

}  // namespace tycho::TYCHO_ISA
