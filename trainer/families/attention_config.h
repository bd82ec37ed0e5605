// Choices of a GPU: what computes attention, the order in which it adds, and the algorithms of products.
#pragma once
#include <cstdint>

#include "trainer/base/fields.h"

namespace tycho {

struct AttentionConfig {
  bool deterministic = true;
  int64_t flash = 2;

  template <class Visitor>
  void fields(Visitor& v) {
    v("deterministic", deterministic,
      "On GPUs: add the gradients of attention in a fixed order, so that a repeated step has the same bits. "
      "false is faster: cuDNN's attention where it can compute the model, else flash attention that adds in "
      "any order. Has not run on a GPU yet.");
    v("flash", flash,
      "On GPUs: the version of flash attention. 2 is LibTorch's. 3 is FlashAttention-3, a package of its own "
      "for compute capability 9.x (H100, H200), found beside LibTorch or named by TYCHO_FLASH_ATTN_3; it "
      "supports soft caps, and computes what cuDNN would, too. What it does not support is computed as with "
      "2. "
      "Has not run on a GPU yet.",
      in_range(2, 3));
  }
};

struct ProductsConfig {
  bool tuned = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("tuned", tuned,
      "On GPUs: take the fastest of cuBLASLt's algorithms for each form of product, measured by rank 0 in "
      "the first step and kept for later runs of this model on such a GPU. The bits of a run depend on them. "
      "Has "
      "not run on a GPU yet.");
  }
};

}  // namespace tycho
