// All state that training changes, except tensors. Anything not in here does not change.
#pragma once
#include <cstdint>
#include <optional>

#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/command.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/rows/batch.h"
#include "trainer/recipe/run_clock.h"

namespace tycho {

struct TrainState {
  int64_t step = 0, samples = 0, tokens = 0;
  RunClock clock;                             // clock of the steps so far
  int64_t stage = 0;                          // of the data: 0 is train_data, i is data_stages[i - 1]
  DataCursor data;                            // position of the next batch in the stage
  OrderMarks order_marks;                     // the DataLoader's at `data`, when it was saved
  int64_t skipped = 0, skipped_in_a_row = 0;  // steps whose update the guard skipped
  Controls controls;                          // settings changed by commands
  Json callbacks = json_object();             // state of callbacks, by name
  Json schedule;                              // state of a dynamic schedule; null for another
  EvalRecords eval;
  bool eval_open = false;  // a stop came before an evaluation that was due at this step
  bool icl_open = false;   // the same for in-context evaluation

  Json to_json() const;
  static TrainState from_json(const Json& json);
};

}  // namespace tycho
