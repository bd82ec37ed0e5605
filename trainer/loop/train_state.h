// All state that training changes, except tensors. Anything not in here does not change.
#pragma once
#include <cstdint>
#include <optional>

#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/command.h"
#include "trainer/config/run_clock.h"
#include "trainer/data/batch.h"
#include "trainer/data/order/order_marks.h"

namespace tycho {

struct TrainState {
  int64_t step = 0, samples = 0, tokens = 0;
  RunClock clock;                             // of the steps so far
  int64_t stage = 0;                          // of the data: 0 is train_data, i is data_stages[i - 1]
  DataCursor data;                            // of the next batch, in the stage
  OrderMarks order_marks;                     // DataLoader's at `data`, when it was saved
  int64_t skipped = 0, skipped_in_a_row = 0;  // steps whose update the guard left out
  Controls controls;                          // what commands changed
  Json callbacks = Json::object();            // what callbacks remember, by name
  Json schedule;                              // what a dynamic schedule is asked with; null for another
  EvalRecords eval;
  bool eval_open = false;  // an evaluation that is due at this step was not made: a stop came first
  bool icl_open = false;   // likewise for in-context evaluation

  Json to_json() const;
  static TrainState from_json(const Json& json);
};

}  // namespace tycho
