// The moving average of the weights: when it moves, and evaluations of it.
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

bool Trainer::evaluates_average() const {
  return average_ != nullptr && evaluates_ema(config_) && average_->has_begun();
}

void Trainer::with_evaluated_weights(const std::function<void()>& measure) {
  if (!evaluates_average()) return measure();
  units_->owned();  // what was gathered is old from here on
  average_->put_in_place();
  const auto put_back = [&] {
    units_->owned();
    average_->put_back();
  };
  try {
    measure();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

}  // namespace tycho
