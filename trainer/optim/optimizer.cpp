// Defaults of optimizers.
#include "trainer/optim/optimizer.h"

#include "trainer/base/error.h"

namespace tycho {

void Optimizer::write_eval_weights(int64_t /*step*/, const std::vector<StateBuffer>& /*average*/) {
  fail(ExitCode::kFailure, "[optim] this optimizer evaluates the weights that it trains");
}

}  // namespace tycho
