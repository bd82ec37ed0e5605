// Ranks whose background collectives do nothing until somebody waits for them: what reads too early reads
// NaN, and what overwrites too early spoils the sum, or gets NaN in its place.
#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "tests/trainer/aten.h"
#include "trainer/comm/communicator.h"

namespace tycho {

/// Counts what goes by, of all ranks together: bytes that are gathered, elements that are summed.
struct Traffic {
  int64_t gathered = 0, scattered = 0, reduced = 0;
};

class LateWorld final : public Communicator {
 public:
  /// `group` outlives it.
  explicit LateWorld(Communicator& group) : group_(&group) {}
  explicit LateWorld(std::unique_ptr<Communicator> group) : own_(std::move(group)), group_(own_.get()) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  void all_reduce(Tensor& x) override { group_->all_reduce(x); }
  void all_gather(Tensor& out, const Tensor& in) override { group_->all_gather(out, in); }
  void reduce_scatter(Tensor& out, const Tensor& in) override { group_->reduce_scatter(out, in); }
  void broadcast(Tensor& x, int root) override { group_->broadcast(x, root); }
  void barrier() override { group_->barrier(); }
  void send(const Tensor& x, int to) override { group_->send(x, to); }
  void recv(Tensor& x, int from) override { group_->recv(x, from); }
  std::unique_ptr<Communicator> split(int colour, int key) override {
    return std::make_unique<LateWorld>(group_->split(colour, key));
  }

  Traffic traffic;
  int in_flight = 0;

 private:
  std::unique_ptr<Pending> start_one(GroupedCall call) override {
    Tensor &out = call.out, &in = call.in;
    switch (call.op) {
      case GroupedCall::Op::kAllReduce:
        traffic.reduced += out.numel();
        return later([this, out]() mutable { group_->all_reduce(out); });
      case GroupedCall::Op::kAllGather:
        traffic.gathered += static_cast<int64_t>(out.nbytes());
        if (out.scalar_type() == at::kByte)
          out.fill_(0x7f);  // NaN of e4m3
        else
          out.fill_(std::numeric_limits<float>::quiet_NaN());
        return later([this, out, in]() mutable { group_->all_gather(out, in); });
      case GroupedCall::Op::kReduceScatter:
        traffic.scattered += in.numel();
        return later([this, out, in]() mutable { group_->reduce_scatter(out, in); });
      case GroupedCall::Op::kSend:
        group_->send(in, call.peer);
        return later([in, sent = in.clone()] {
          if (!at::equal(in, sent)) in.fill_(std::numeric_limits<float>::quiet_NaN());
        });
      case GroupedCall::Op::kRecv: break;
    }
    Tensor arrived = at::empty_like(out);  // now: messages keep their order, whichever is awaited first
    group_->recv(arrived, call.peer);
    out.fill_(std::numeric_limits<float>::quiet_NaN());
    return later([out, arrived]() mutable { out.copy_(arrived); });
  }

  class Late final : public Pending {
   public:
    Late(int& in_flight, std::function<void()> run) : in_flight_(in_flight), run_(std::move(run)) {
      ++in_flight_;
    }
    void wait() override {
      std::exchange(run_, nullptr)();
      --in_flight_;
    }

   private:
    int& in_flight_;
    std::function<void()> run_;
  };
  std::unique_ptr<Pending> later(std::function<void()> run) {
    return std::make_unique<Late>(in_flight, std::move(run));
  }

  std::unique_ptr<Communicator> own_;
  Communicator* group_;
};

}  // namespace tycho
