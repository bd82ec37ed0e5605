// Runs reductions on a second stream, which events order with the current one.
#include "trainer/comm/nccl/nccl.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "trainer/comm/collective_checks.h"
#include "trainer/comm/nccl/nccl_group.h"
#include "trainer/comm/nccl/nccl_sums.h"
#include "trainer/comm/nccl/nccl_together.h"
#include "trainer/comm/nccl/rank_pairs.h"
#include "trainer/comm/nccl/sum_algorithms.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

NcclTable::Number number_of(const Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat: return NcclTable::Number::kFp32;
    case at::kDouble: return NcclTable::Number::kFp64;
    case at::kBFloat16: return NcclTable::Number::kBf16;
    case at::kInt: return NcclTable::Number::kInt32;
    case at::kLong: return NcclTable::Number::kInt64;
    case at::kByte: return NcclTable::Number::kByte;
    default: fail(ExitCode::kFailure, "[nccl] cannot sum {}", c10::toString(x.scalar_type()));
  }
}

int64_t num_bytes(const Tensor& x) { return static_cast<int64_t>(x.nbytes()); }

/// Makes the current stream wait for the event; the host does not wait.
class OnStream final : public Pending {
 public:
  OnStream(std::shared_ptr<c10::Event> event, c10::Stream waits) : event_(std::move(event)), waits_(waits) {}
  void wait() override { event_->block(waits_); }

 private:
  std::shared_ptr<c10::Event> event_;  // shared by all calls that start together
  c10::Stream waits_;
};

/// NCCL groups that were made of one world.
using NcclGroups = std::vector<std::weak_ptr<NcclGroup>>;

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, const at::Device& device, SumOrder order,
                   std::shared_ptr<NcclGroups> groups)
      : host_(std::move(host)),
        device_(device),
        order_(order),
        streams_(device.type()),
        own_stream_(streams_.getStreamFromGlobalPool(device, /*isHighPriority=*/true)),
        group_(std::make_shared<NcclGroup>(*host_, device)),
        sums_(*group_, host_->rank(), host_->size()),
        groups_(std::move(groups)) {
    groups_->push_back(group_);
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  void all_reduce(Tensor& x) override {
    if (is_host("all_reduce", x)) return host_->all_reduce(x);
    sum(x, current());
  }

  void all_gather(Tensor& out, const Tensor& in) override {
    check_all_gather(out, in, *this);
    if (is_host("all_gather", in)) return host_->all_gather(out, in);
    gather(out, in, current());
  }

  void reduce_scatter(Tensor& out, const Tensor& in) override {
    check_reduce_scatter(out, in, *this);
    if (is_host("reduce_scatter", in)) return host_->reduce_scatter(out, in);
    scatter(out, in, current());
  }

  void broadcast(Tensor& x, int root) override {
    check_broadcast(x, root, *this);
    if (is_host("broadcast", x)) return host_->broadcast(x, root);
    note(call_of("broadcast", x, root));
    const Range range("nccl::broadcast");
    nccl().broadcast(group_->get(), x.data_ptr(), num_bytes(x), root, current().native_handle());
  }
  void barrier() override { host_->barrier(); }

  void send(const Tensor& x, int to) override {
    check_message("send", x, to, *this);
    if (is_host("send", x)) return host_->send(x, to);
    if (Pair* pair = pair_with(to)) return pair->ranks->send(x, pair->other);
    give(x, to, current());
  }
  void recv(Tensor& x, int from) override {
    check_message("recv", x, from, *this);
    if (is_host("recv", x)) return host_->recv(x, from);
    if (Pair* pair = pair_with(from)) return pair->ranks->recv(x, pair->other);
    take(x, from, current());
  }

  std::vector<std::unique_ptr<Pending>> start_together(const std::vector<GroupedCall>& calls) override {
    size_t num_host = 0;
    for (const GroupedCall& call : calls) num_host += is_host_call(call) ? 1 : 0;
    if (num_host == calls.size()) return host_->start_together(calls);
    TYCHO_CHECK(num_host == 0,
                "[nccl] start_together: expected all tensors on {}, got {} of {} in host memory",
                device_.str(), num_host, calls.size());
    std::vector<std::unique_ptr<Pending>> all(calls.size());
    for (auto& [ranks, pair] : pairs_) start_messages(pair, calls, all);
    std::vector<size_t> others;
    for (size_t i = 0; i < calls.size(); ++i)
      if (all[i] == nullptr) others.push_back(i);
    if (others.empty()) return all;
    const std::shared_ptr<c10::Event> done = enqueued([&](const c10::Stream& stream) {
      NcclTogether together(group_->get());
      for (const size_t i : others)
        if (!is_own_sum(calls[i])) enqueue(calls[i], stream);
      {
        const Range range("nccl::together");
        together.end();
      }
      for (const size_t i : others)
        if (is_own_sum(calls[i])) enqueue(calls[i], stream);
    });
    for (const size_t i : others) all[i] = std::make_unique<OnStream>(done, current());
    return all;
  }

  void connect_pairs(const std::vector<std::pair<int, int>>& pairs) override {
    if (size() == 2) return;  // the group is the pair
    for (const RankPairs& round : rounds_of_pairs(pairs)) {
      const auto own = std::find_if(round.begin(), round.end(), [&](const auto& pair) {
        return pair.first == rank() || pair.second == rank();
      });
      const bool is_in = own != round.end();
      std::unique_ptr<Communicator> host = host_->split(is_in ? own->first : size() + rank(), rank());
      if (!is_in) continue;
      auto ranks = std::make_unique<NcclCommunicator>(std::move(host), device_, order_, groups_);
      const int other = 1 - ranks->rank();
      pairs_[*own] = {std::move(ranks), own->first == rank() ? own->second : own->first, other};
    }
  }

  std::shared_ptr<void> registered(const Tensor& x) override {
    if (size() == 1 || !x.defined() || x.numel() == 0 || is_host("registered", x)) return nullptr;
    void* const registration = group_->register_buffer(x.data_ptr(), num_bytes(x));
    if (registration == nullptr) return nullptr;
    return {registration, [group = std::weak_ptr(group_), x](void* memory) {
              if (const std::shared_ptr<NcclGroup> alive = group.lock()) alive->deregister_buffer(memory);
            }};
  }

  std::unique_ptr<Communicator> split(int colour, int key) override {
    return std::make_unique<NcclCommunicator>(host_->split(colour, key), device_, order_, groups_);
  }

  Error abort(const Error& error) override { return host_->abort(error); }
  void check() override {
    for (const std::weak_ptr<NcclGroup>& one : *groups_)
      if (const std::shared_ptr<NcclGroup> group = one.lock()) group->check();
    if (const NotedGroup noted = host_->noted(); noted.calls != nullptr) noted.calls->device_is_done();
  }
  NotedGroup noted() const override { return host_->noted(); }
  void keep_collectives_in(const std::string& folder) override { host_->keep_collectives_in(folder); }
  bool is_broken() override { return host_->is_broken(); }
  Error why_broken(const std::string& what) override { return host_->why_broken(what); }

 private:
  void note(const CollectiveCall& call) const {
    host_->noted().add(call, RecentCollectives::State::kOnDevice);
  }
  c10::Stream current() const { return streams_.getStream(device_); }

  /// Returns true if x is in host memory; otherwise it must be on this rank's device.
  bool is_host(const char* op, const Tensor& x) const {
    check_whole(op, x);
    TYCHO_CHECK(x.is_cpu() || x.device() == device_,
                "[nccl] {}: expected a tensor in host memory or on {}, got one on {}", op, device_.str(),
                x.device().str());
    return x.is_cpu();
  }

  /// Checks a grouped call. Returns true if its tensor is in host memory.
  bool is_host_call(const GroupedCall& call) const {
    switch (call.op) {
      case GroupedCall::Op::kAllReduce: return is_host("all_reduce", call.out);
      case GroupedCall::Op::kAllGather:
        check_all_gather(call.out, call.in, *this);
        return is_host("all_gather", call.in);
      case GroupedCall::Op::kReduceScatter:
        check_reduce_scatter(call.out, call.in, *this);
        return is_host("reduce_scatter", call.in);
      case GroupedCall::Op::kSend:
        check_message("send", call.in, call.peer, *this);
        return is_host("send", call.in);
      case GroupedCall::Op::kRecv: break;
    }
    check_message("recv", call.out, call.peer, *this);
    return is_host("recv", call.out);
  }

  /// Group for messages with one other rank.
  struct Pair {
    std::unique_ptr<NcclCommunicator> ranks;
    int with = -1;   // rank of the other in this group
    int other = -1;  // rank of the other in the pair
  };
  Pair* pair_with(int rank) {
    for (auto& [ranks, pair] : pairs_)
      if (pair.with == rank) return &pair;
    return nullptr;
  }
  /// Starts those of the calls that are messages of the pair, and stores their results in `all`.
  void start_messages(Pair& pair, const std::vector<GroupedCall>& calls,
                      std::vector<std::unique_ptr<Pending>>& all) {
    std::vector<size_t> mine;
    std::vector<GroupedCall> messages;
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool is_message = calls[i].op == GroupedCall::Op::kSend || calls[i].op == GroupedCall::Op::kRecv;
      if (!is_message || calls[i].peer != pair.with) continue;
      mine.push_back(i);
      messages.push_back(calls[i]);
      messages.back().peer = pair.other;
    }
    if (mine.empty()) return;
    auto started = pair.ranks->start_together(messages);
    for (size_t m = 0; m < mine.size(); ++m) all[mine[m]] = std::move(started[m]);
  }

  void enqueue(GroupedCall call, const c10::Stream& stream) {
    switch (call.op) {
      case GroupedCall::Op::kAllReduce: return sum(call.out, stream);
      case GroupedCall::Op::kAllGather: return gather(call.out, call.in, stream);
      case GroupedCall::Op::kReduceScatter: return scatter(call.out, call.in, stream);
      case GroupedCall::Op::kSend: return give(call.in, call.peer, stream);
      case GroupedCall::Op::kRecv: return take(call.out, call.peer, stream);
    }
  }

  /// Runs `enqueue` on own_stream_, after the current stream's work so far. Returns an event that marks its
  /// end.
  template <class Enqueue>
  std::shared_ptr<c10::Event> enqueued(Enqueue&& enqueue) {
    c10::Event written(device_.type());
    written.record(current());
    written.block(own_stream_);
    enqueue(own_stream_);
    auto done = std::make_shared<c10::Event>(device_.type());
    done->record(own_stream_);
    return done;
  }

  /// True if numbers like those of x are added by sums_. For whole numbers the order does not matter.
  bool is_own_sum(const Tensor& x) const { return order_ == SumOrder::kTree && x.is_floating_point(); }
  /// True for a call that consists of several NCCL calls, which start after calls that are one.
  bool is_own_sum(const GroupedCall& call) const {
    return (call.op == GroupedCall::Op::kAllReduce || call.op == GroupedCall::Op::kReduceScatter) &&
           is_own_sum(call.out);
  }

  void sum(Tensor& x, const c10::Stream& stream) {
    note(call_of("all_reduce", x));
    if (is_own_sum(x)) {
      const c10::StreamGuard current(stream);
      return sums_.all_reduce(x, stream.native_handle());
    }
    const Range range("nccl::all_reduce");
    nccl().all_reduce(group_->get(), x.data_ptr(), x.numel(), number_of(x), stream.native_handle());
  }
  void gather(Tensor& out, const Tensor& in, const c10::Stream& stream) {
    if (in.numel() == 0) return;
    note(call_of("all_gather", in));
    const Range range("nccl::all_gather");
    nccl().all_gather(group_->get(), in.data_ptr(), out.data_ptr(), num_bytes(in), stream.native_handle());
  }
  void scatter(Tensor& out, const Tensor& in, const c10::Stream& stream) {
    if (out.numel() == 0) return;
    note(call_of("reduce_scatter", in));
    if (is_own_sum(in)) {
      const c10::StreamGuard current(stream);
      return sums_.reduce_scatter(out, in, stream.native_handle());
    }
    const Range range("nccl::reduce_scatter");
    nccl().reduce_scatter(group_->get(), in.data_ptr(), out.data_ptr(), out.numel(), number_of(in),
                          stream.native_handle());
  }
  void give(const Tensor& x, int to, const c10::Stream& stream) {
    if (x.numel() == 0) return;
    note(call_of("send", x, to));
    const Range range("nccl::send");
    nccl().send(group_->get(), x.data_ptr(), num_bytes(x), to, stream.native_handle());
  }
  void take(Tensor& x, int from, const c10::Stream& stream) {
    if (x.numel() == 0) return;
    note(call_of("recv", x, from));
    const Range range("nccl::recv");
    nccl().recv(group_->get(), x.data_ptr(), num_bytes(x), from, stream.native_handle());
  }

  std::unique_ptr<Communicator> host_;
  at::Device device_;
  SumOrder order_;
  c10::impl::VirtualGuardImpl streams_;
  c10::Stream own_stream_;            // for transfers while the current stream computes
  std::shared_ptr<NcclGroup> group_;  // shared only while check() uses it
  NcclSums sums_;
  std::shared_ptr<NcclGroups> groups_;
  std::map<std::pair<int, int>, Pair> pairs_;  // sorted, so that all ranks visit pairs in the same order
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> host, const at::Device& device,
                                              SumOrder order) {
  if (order != SumOrder::kAny) keep_sums_in_fixed_order(nccl().version());
  return std::make_unique<NcclCommunicator>(std::move(host), device, order, std::make_shared<NcclGroups>());
}

}  // namespace tycho
