// Muon over the matrices of the blocks, AdamW over everything else.
#include <ATen/ops/empty.h>
#include <algorithm>
#include <cmath>

#include "trainer/kernels/optimizer/muon_step.h"
#include "trainer/optim/kinds.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/optim/row_blocks.h"

namespace tycho {
namespace {

double scale_of(MuonScale scale, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  return scale == MuonScale::kOriginal ? std::sqrt(std::max(1.0, rows / columns))
                                       : 0.2 * std::sqrt(std::max(rows, columns));
}

NewtonSchulzSpace space_for(const Segments& segments) {
  int64_t side = 0, elements = 0;
  for (const WholeMatrix& matrix : segments.matrices) {
    side = std::max(side, std::min(matrix.shape[0], matrix.shape[1]));
    elements = std::max(elements, numel(matrix.shape));
  }
  return NewtonSchulzSpace(side, elements, segments.device, newton_schulz_dtype(segments.device));
}

/// The matrices of one unit, and the parts `own` that this rank has; null for none.
struct UnitMatrices {
  std::vector<const WholeMatrix*> whole;
  std::vector<Segment*> own;

  /// Returns the offsets of the matrices that the rank has parts of, one after the other. All others share
  /// the space after them.
  std::vector<int64_t> places() const {
    std::vector<int64_t> begins(whole.size());
    int64_t end = 0;
    for (const bool mine : {true, false})
      for (size_t i = 0; i < whole.size(); ++i)
        if ((own[i] != nullptr) == mine) begins[i] = end, end += mine ? numel(whole[i]->shape) : 0;
    return begins;
  }
  int64_t elements() const {
    const std::vector<int64_t> begins = places();
    int64_t most = 0;
    for (size_t i = 0; i < whole.size(); ++i) most = std::max(most, begins[i] + numel(whole[i]->shape));
    return most;
  }
};

class Muon final : public Optimizer {
 public:
  Muon(const MuonConfig& config, Segments segments)
      : config_(config), segments_(std::move(segments)), space_(space_for(segments_)) {
    for (const WholeMatrix& matrix : segments_.matrices) {
      units_.resize(std::max(units_.size(), matrix.unit + 1));
      units_[matrix.unit].whole.push_back(&matrix);
      units_[matrix.unit].own.push_back(nullptr);
    }
    int64_t part_elements = 0, unit_elements = 0;
    for (Segment& s : segments_.list) {
      if (s.matrix < 0) continue;
      const WholeMatrix* const whole = &segments_.matrices[static_cast<size_t>(s.matrix)];
      UnitMatrices& unit = units_[whole->unit];
      unit.own[static_cast<size_t>(whole - unit.whole.front())] = &s;
      part_elements = std::max(part_elements, s.grads.numel());
    }
    for (const UnitMatrices& unit : units_) unit_elements = std::max(unit_elements, unit.elements());
    const auto options = space_.a.options();
    part_ = at::empty({part_elements}, options);
    if (segments_.owners != nullptr) wholes_ = at::empty({unit_elements}, options);
  }

  void step(double lr, int64_t step, const Tensor& grad_scale_1) override {
    for (Segment& s : segments_.list)
      if (s.matrix < 0)
        adamw_update(s, lr, decay_share(s.rule, lr, config_.lr, false), config_.eps, step, grad_scale_1);
      else if (segments_.owners == nullptr)
        update_matrix(s, lr, step, grad_scale_1);
    if (segments_.owners == nullptr) return;
    for (UnitMatrices& unit : units_) update_shared(unit, lr, step, grad_scale_1);
  }
  std::vector<StateBuffer>& state() override { return segments_.state; }

 private:
  /// Returns the momentum of this rank's part of a matrix.
  Tensor momentum_of(Segment& s, const Tensor& grad_scale_1) {
    Tensor part = part_.narrow(0, 0, s.grads.numel());
    muon_momentum(config_.momentum, config_.nesterov, grad_scale_1, s.grads, s.state[0], part);
    return part;
  }

  void add_part(Segment& s, const Shape& whole, const Tensor& part, double lr, int64_t step) {
    s.weights.step = static_cast<uint64_t>(step);
    add_update(lr * s.rule.lr_scale * scale_of(config_.adjust_lr, whole),
               decay_share(s.rule, lr, config_.lr, false), s.weights, part);
  }

  void update_matrix(Segment& s, double lr, int64_t step, const Tensor& grad_scale_1) {
    const Tensor part = momentum_of(s, grad_scale_1);
    Tensor whole = part.view(s.extent.spec->shape);
    newton_schulz(whole, config_.ns_steps, space_);
    add_part(s, s.extent.spec->shape, part, lr, step);
  }

  /// Gathers the parts of each matrix. Each rank computes the matrices that it has a part of, while others
  /// compute theirs.
  void update_shared(UnitMatrices& unit, double lr, int64_t step, const Tensor& grad_scale_1) {
    const std::vector<int64_t> places = unit.places();
    const auto whole_of = [&](size_t i) {
      const Shape& shape = unit.whole[i]->shape;
      return wholes_.narrow(0, places[i], numel(shape)).view(shape);
    };
    for (size_t i = 0; i < unit.whole.size(); ++i) {
      Tensor whole = whole_of(i).zero_();
      if (Segment* const s = unit.own[i]; s != nullptr) {
        const Tensor part = momentum_of(*s, grad_scale_1);
        copy_to_whole(s->extent, part, whole);
      }
      segments_.owners->all_reduce(whole);
    }
    for (size_t i = 0; i < unit.whole.size(); ++i) {
      Segment* const s = unit.own[i];
      if (s == nullptr) continue;
      Tensor whole = whole_of(i);
      newton_schulz(whole, config_.ns_steps, space_);
      Tensor part = part_.narrow(0, 0, s->grads.numel());
      copy_from_whole(s->extent, whole, part);
      add_part(*s, unit.whole[i]->shape, part, lr, step);
    }
  }

  MuonConfig config_;
  Segments segments_;
  NewtonSchulzSpace space_;
  std::vector<UnitMatrices> units_;
  Tensor part_;    // of one matrix at a time
  Tensor wholes_;  // of one unit, when ranks share matrices
};

}  // namespace

std::unique_ptr<Optimizer> make_kind(const MuonConfig& config, Segments segments) {
  return std::make_unique<Muon>(config, std::move(segments));
}

}  // namespace tycho
