// A rank has two equal parts of 2 cp; with sequence parallel ranks along tp share these in turn.
#include "trainer/recipe/context_parallel.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace tycho {

int64_t row_parts(const ParallelConfig& parallel) {
  const int64_t tp = parallel.sequence_parallel ? parallel.tp : 1;
  return parallel.cp > 1 ? parallel.cp * std::lcm(int64_t{2}, tp) : tp;
}

void check_context_parallel(const TrainConfig& config, ConfigProblems& problems) {
  const int64_t cp = config.parallel.cp, seq_len = config.seq_len;
  problems.idle("parallel.cp_attention", config.parallel.cp_attention == CpAttention::kRing, cp > 1,
                "with parallel.cp = 1");
  if (cp == 1) return;
  const int64_t tp = config.parallel.sequence_parallel ? config.parallel.tp : 1;
  const int64_t step = row_parts(config.parallel), below = seq_len / step * step;
  if (seq_len % step != 0)
    problems.add("seq_len",
                 "{} tokens cannot be shared evenly by parallel.cp = {}{}: expected a multiple of {}; "
                 "write {}{}, or set parallel.cp = 1",
                 seq_len, cp, tp > 1 ? fmt::format(" and parallel.tp = {}", tp) : "", step,
                 below > 0 ? fmt::format("{} or ", below) : "", below + step);
}

}  // namespace tycho
