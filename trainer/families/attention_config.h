// The order in which attention adds on a GPU.
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

}  // namespace tycho
