// How the products of GPUs are chosen.
#pragma once
#include "trainer/base/fields.h"

namespace tycho {

struct ProductsConfig {
  bool tuned = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("tuned", tuned,
      "On GPUs: take the fastest of cuBLASLt's algorithms for each form of product, measured by rank 0 in "
      "the "
      "first step and kept for later runs of this model on such a GPU. The bits of a run depend on them. Has "
      "not run on a GPU yet.");
  }
};

}  // namespace tycho
