// In step s a rank has the keys of the rank s places before it.
#include "trainer/models/context/ring_attention.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace tycho {
namespace {

/// Exchanges keys with the neighbours of this rank, and knows whose keys it has.
class Ring {
 public:
  Ring(const ContextRegion& context, const AttentionShape& shape)
      : ranks_(context.ranks()), seq_(context.seq()), shape_(shape) {}

  int64_t steps() const { return ranks_.size(); }
  bool is_last(int64_t step) const { return step + 1 == steps(); }
  /// Returns the shape of this rank's queries over the keys that it has in a step.
  AttentionShape part(int64_t step) const {
    const int64_t owner = (ranks_.rank() - step + steps()) % steps();
    const auto [early, late] = cp_spans(seq_, {steps(), owner});
    AttentionShape part = shape_;
    part.early_keys = {early.first, early.count}, part.late_keys = {late.first, late.count};
    return part;
  }

  /// Starts to send `leaving` to the next rank, and to receive from the previous one at the same time.
  void pass(const Tensor& leaving, const Tensor& arriving) {
    const int size = ranks_.size(), rank = ranks_.rank();
    calls_.push_back(GroupedCall::send(leaving, (rank + 1) % size));
    calls_.push_back(GroupedCall::recv(arriving, (rank + size - 1) % size));
  }
  void start() { on_their_way_ = ranks_.start_together(std::exchange(calls_, {})); }
  void wait() {
    for (const std::unique_ptr<Pending>& message : on_their_way_) message->wait();
    on_their_way_.clear();
  }

 private:
  Communicator& ranks_;
  int64_t seq_;
  AttentionShape shape_;
  std::vector<GroupedCall> calls_;
  std::vector<std::unique_ptr<Pending>> on_their_way_;
};

/// Returns the tensor that parts are summed in, as fp32: x itself, or a separate one, which keep_sum rounds
/// once.
Tensor sum_for(const Tensor& x, const RingWorkspace& room) {
  return x.scalar_type() == at::kFloat ? x : room.sum_NE;
}
void keep_sum(const Tensor& sum, const Tensor& x) {
  if (x.scalar_type() != at::kFloat) x.copy_(sum);
}

}  // namespace

void ring_attention(const ContextRegion& context, const AttentionShape& shape, const ScoreRules& rules,
                    const AttentionRows& own, const RingWorkspace& room, AttentionSaved saved,
                    const FlashRules& flash) {
  Ring ring(context, shape);
  Tensor sum_NE = sum_for(saved.out_NE, room), here = room.kv[0], next = room.kv[1];
  sum_NE.zero_();
  saved.log_sum_exp_BHT.fill_(-INFINITY);
  here.copy_(own.kv);
  for (int64_t step = 0; step < ring.steps(); ++step) {
    if (!ring.is_last(step)) ring.pass(here, next), ring.start();
    attention(ring.part(step), rules, {own.q_NE, here}, {sum_NE, saved.log_sum_exp_BHT, saved.state}, flash);
    ring.wait();
    std::swap(here, next);
  }
  keep_sum(sum_NE, saved.out_NE);
}

void ring_attention_backward(const ContextRegion& context, const AttentionShape& shape,
                             const ScoreRules& rules, const AttentionRows& own, const RingWorkspace& room,
                             AttentionSaved saved, const Tensor& dout_NE, const AttentionRows& gradients,
                             const FlashRules& flash) {
  Ring ring(context, shape);
  Tensor dq_NE = sum_for(gradients.q_NE, room), here = room.kv[0], next = room.kv[1];
  Tensor from_here = room.d_kv[0], arriving = room.d_kv[1], leaving = room.d_kv[2];
  dq_NE.zero_();
  here.copy_(own.kv);
  for (int64_t step = 0; step < ring.steps(); ++step) {
    if (!ring.is_last(step)) ring.pass(here, next);
    if (step > 0) ring.pass(leaving, arriving);
    ring.start();
    attention_backward(ring.part(step), rules, {own.q_NE, here}, saved, dout_NE, {dq_NE, from_here}, flash);
    ring.wait();
    std::swap(here, next);
    // The sum of this rank's gradient of the part and those of earlier ranks in the ring leaves in the next
    // step.
    if (step > 0) from_here.add_(arriving);
    std::swap(from_here, leaving);
  }
  ring.pass(leaving, arriving), ring.start(), ring.wait();
  gradients.kv.copy_(arriving);
  keep_sum(dq_NE, gradients.q_NE);
}

}  // namespace tycho
