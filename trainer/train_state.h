// Everything that training changes besides tensors. If it is not here, it does not change.
#pragma once
#include <cstdint>

#include "trainer/base/json.h"
#include "trainer/data/batch.h"

namespace tycho {

struct TrainState {
  int64_t step = 0, samples = 0, tokens = 0;
  DataCursor data;                            // of the next batch
  int64_t skipped = 0, skipped_in_a_row = 0;  // steps whose update the guard left out

  Json to_json() const;
  static TrainState from_json(const Json& json);
};

}  // namespace tycho
