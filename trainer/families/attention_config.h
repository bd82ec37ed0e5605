// Choices of a GPU: the order in which attention adds, and the algorithms of products.
#pragma once
#include "trainer/base/fields.h"

namespace tycho {

struct AttentionConfig {
  bool deterministic = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("deterministic", deterministic,
      "On GPUs: add the gradients of attention in a fixed order, so that a repeated step has the same bits. "
      "false is faster: cuDNN's attention where it can compute the model, else flash attention that adds in "
      "any order. Has not run on a GPU yet.");
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
