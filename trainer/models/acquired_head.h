// Keeps the head's parameters acquired, and the embedding's if the head is tied to it.
#pragma once
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/head.h"
#include "trainer/models/linear.h"
#include "trainer/sharding/gathered_unit.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

/// Keeps the head's parameters acquired while it lives, and the embedding's when a tied head multiplies by
/// its table.
class AcquiredHead {
 public:
  AcquiredHead(UnitStore& units, const DecoderSpec& spec, Pass pass)
      : units_(units),
        unit_(static_cast<int>(spec.layers) + 1),
        at_(head_params(spec)),
        pass_(pass),
        head_(units.acquire(unit_, pass)) {
    if (tied()) table_ = &units.acquire(0, pass);
  }
  ~AcquiredHead() {
    if (tied()) units_.release(0, pass_);
    units_.release(unit_, pass_);
  }
  AcquiredHead(const AcquiredHead&) = delete;
  AcquiredHead& operator=(const AcquiredHead&) = delete;

  HeadParams params() const {
    return {{head_[0], view(head_, at_.norm_bias)}, tied() ? (*table_)[output_view()] : head_[output_view()]};
  }
  HeadGrads grads() const {
    Views& own = units_.grads(unit_);
    return {{own[0], view(own, at_.norm_bias)}, tied() ? units_.grads(0)[output_view()] : own[output_view()]};
  }

 private:
  bool tied() const { return at_.output < 0; }
  /// Index of the output matrix, with its zero rows, in its unit.
  size_t output_view() const {
    const int param = tied() ? embedding_param::kTable : at_.output;
    return units_.layout(tied() ? 0 : unit_).spec().padded_view(static_cast<size_t>(param));
  }

  UnitStore& units_;
  int unit_;
  HeadParamIndex at_;
  Pass pass_;
  const Views& head_;
  const Views* table_ = nullptr;
};

}  // namespace tycho
