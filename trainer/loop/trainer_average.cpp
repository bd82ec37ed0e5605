// The moving average of the weights: when it moves.
#include "trainer/loop/trainer.h"

namespace tycho {

// As torch's AveragedModel: the first update copies the weights.
void Trainer::update_average(int64_t step) {
  if (average_ == nullptr || step < ema_.start ||
      !passes_on_clock(static_cast<double>(step) + ema_.lead, ema_.every))
    return;
  if (average_->has_begun())
    average_->update(ema_.decay);
  else
    average_->begin();
}

}  // namespace tycho
