// Visits the stages in turn and runs what can run, until all is done.
#include "trainer/pipeline/simulation.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

using Direction = PipelineAction::Kind;
constexpr double kNotYet = -1;

class Simulation {
 public:
  Simulation(const PipelineShape& shape, const PipelineCosts& costs)
      : shape_(shape), costs_(costs), forward_end_(size(), kNotYet), backward_end_(size(), kNotYet) {}

  /// Returns when the input of a pass is at its stage; kNotYet while unknown.
  double input_at(int stage, const PipelineAction& action) const {
    const int part = shape_.part_of(stage, action.chunk), micro_batch = action.micro_batch;
    if (action.kind == Direction::kForward)
      return part == 0 ? 0 : arrival(forward_end_[at(part - 1, micro_batch)]);
    const double own = forward_end_[at(part, micro_batch)];
    if (own == kNotYet || part + 1 == shape_.num_parts()) return own;
    const double gradient = arrival(backward_end_[at(part + 1, micro_batch)]);
    return gradient == kNotYet ? kNotYet : std::max(own, gradient);
  }

  /// Computes a pass that begins at begin_s. Returns its end.
  double compute(int stage, const PipelineAction& action, double begin_s) {
    const int part = shape_.part_of(stage, action.chunk);
    const bool forward = action.kind == Direction::kForward;
    const double end_s =
        begin_s + (forward ? costs_.forward_s : costs_.backward_s)[static_cast<size_t>(part)];
    (forward ? forward_end_ : backward_end_)[at(part, action.micro_batch)] = end_s;
    return end_s;
  }

 private:
  size_t size() const {
    return static_cast<size_t>(shape_.num_parts()) * static_cast<size_t>(shape_.num_micro_batches);
  }
  size_t at(int part, int micro_batch) const {
    return static_cast<size_t>(part) * static_cast<size_t>(shape_.num_micro_batches) +
           static_cast<size_t>(micro_batch);
  }
  /// Returns the arrival of a result. With one stage nothing is sent.
  double arrival(double end_s) const {
    return end_s == kNotYet || shape_.num_stages == 1 ? end_s : end_s + costs_.send_s;
  }

  const PipelineShape& shape_;
  const PipelineCosts& costs_;
  std::vector<double> forward_end_, backward_end_;  // of (part, micro-batch)
};

}  // namespace

PipelineCosts equal_costs(const PipelineShape& shape) {
  const auto parts = static_cast<size_t>(shape.num_parts());
  return {std::vector<double>(parts, 1), std::vector<double>(parts, 2), 0};
}

PipelineTimes simulate_pipeline(const PipelineShape& shape, const PipelineTable& table,
                                const PipelineCosts& costs) {
  Simulation simulation(shape, costs);
  PipelineTimes times;
  times.spans.resize(table.size());
  double busy_s = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < table.size(); ++stage) {
      std::vector<PipelineTimes::Span>& spans = times.spans[stage];
      while (spans.size() < table[stage].size()) {
        const PipelineAction& action = table[stage][spans.size()];
        const double input_s = simulation.input_at(static_cast<int>(stage), action);
        if (input_s == kNotYet) break;
        const double begin_s = std::max(input_s, spans.empty() ? 0 : spans.back().end_s);
        spans.push_back({begin_s, simulation.compute(static_cast<int>(stage), action, begin_s)});
        busy_s += spans.back().end_s - begin_s;
        times.step_s = std::max(times.step_s, spans.back().end_s);
        moved = true;
      }
    }
  }
  for (size_t stage = 0; stage < table.size(); ++stage)
    TYCHO_CHECK(times.spans[stage].size() == table[stage].size(),
                "[pipeline] stage {} waits forever before {}", stage,
                describe(shape, table[stage][times.spans[stage].size()]));
  if (times.step_s > 0) times.idle_share = 1 - busy_s / (static_cast<double>(table.size()) * times.step_s);
  return times;
}

}  // namespace tycho
