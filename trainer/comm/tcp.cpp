// Tensors over SocketCollectives. Blocking calls run on the caller's thread, because another thread would
// cost more than a small sum.
#include "trainer/comm/tcp.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/base/hash.h"
#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_checks.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/comm/sockets/background.h"
#include "trainer/comm/sockets/socket_collectives.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {
namespace {

int64_t bytes_in(const Tensor& x) { return static_cast<int64_t>(x.nbytes()); }

SumType sum_type(const Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat: return SumType::kFp32;
    case at::kDouble: return SumType::kFp64;
    case at::kBFloat16: return SumType::kBf16;
    case at::kInt: return SumType::kInt32;
    case at::kLong: return SumType::kInt64;
    case at::kByte: return SumType::kByte;
    default: fail(ExitCode::kFailure, "[parallel] cannot sum {}", c10::toString(x.scalar_type()));
  }
}

template <class Body>
std::optional<TransferFailure> timed(Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  std::optional<TransferFailure> failure = body();
  process_progress().add_transfer(seconds_since(begin));
  return failure;
}

/// State shared by a world and the groups that were split from it: when one of them breaks, all have broken.
struct TcpRun {
  std::shared_ptr<Peers> peers;
  double timeout_s;
  SumOrder order;
  std::optional<Error> failure;  // failure reported by the first group of this rank that noticed
};

class TcpCommunicator final : public Communicator {
 public:
  /// Makes a group of these ranks of the world; this rank is `ranks[rank]`. `name` is unique to the group.
  /// Collective over them.
  TcpCommunicator(std::shared_ptr<TcpRun> run, std::string name, std::vector<int> ranks, int rank)
      : run_(std::move(run)),
        name_(std::move(name)),
        ranks_(std::move(ranks)),
        rank_(rank),
        noted_{&run_->peers->collectives(), run_->peers->collectives().add_group(name_, ranks_)},
        collectives_(rank_, run_->peers->connect(short_name(name_), ranks_), limits(), run_->order) {}
  ~TcpCommunicator() override { collectives_.stop(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  void all_reduce(Tensor& x) override { now(sum_of(x)); }
  void all_gather(Tensor& out, const Tensor& in) override { now(gather(out, in)); }
  void reduce_scatter(Tensor& out, const Tensor& in) override { now(scatter(out, in)); }
  void broadcast(Tensor& x, int root) override {
    check_broadcast(x, root, *this);
    check_host("broadcast", x);
    now({call_of("broadcast", x, root),
         [&] { return collectives_.broadcast(x.data_ptr(), bytes_in(x), root); }});
  }
  void barrier() override {
    now({{.op = "barrier"}, [&] { return collectives_.barrier(); }});
  }
  void send(const Tensor& x, int to) override {
    check_message("send", x, to, *this);
    check_host("send", x);
    check();
    at_once(call_of("send", x, to), [&] {
      Messages& messages = messages_with(to);
      messages.sends.wait_for_all();
      return messages.wire.send(x.data_ptr(), bytes_in(x));
    });
  }
  void recv(Tensor& x, int from) override {
    check_message("recv", x, from, *this);
    check_host("recv", x);
    check();
    at_once(call_of("recv", x, from), [&] {
      Messages& messages = messages_with(from);
      messages.receives.wait_for_all();
      return messages.wire.recv(x.data_ptr(), bytes_in(x));
    });
  }
  std::unique_ptr<Communicator> split(int colour, int key) override;

  Error abort(const Error& error) override {
    if (!run_->failure)
      run_->failure = Error("[parallel] this rank has left the group", ExitCode::kTerminated);
    return run_->peers->abort(error);
  }
  void check() override {
    if (run_->failure) throw *run_->failure;
  }
  NotedGroup noted() const override { return noted_; }
  void keep_collectives_in(const std::string& folder) override { run_->peers->keep_collectives_in(folder); }
  bool is_broken() override { return run_->peers->is_broken(); }
  Error why_broken(const std::string& what) override {
    if (!run_->failure) run_->failure = run_->peers->why_broken(what, {});
    return *run_->failure;
  }

 private:
  std::unique_ptr<Pending> start_one(GroupedCall call) override {
    switch (call.op) {
      case GroupedCall::Op::kAllReduce: return in_background(sum_of(call.out), background_);
      case GroupedCall::Op::kAllGather: return in_background(gather(call.out, call.in), background_);
      case GroupedCall::Op::kReduceScatter: return in_background(scatter(call.out, call.in), background_);
      case GroupedCall::Op::kSend: break;
      case GroupedCall::Op::kRecv: return start_recv(call.out, call.peer);
    }
    return start_send(call.in, call.peer);
  }
  std::unique_ptr<Pending> start_send(const Tensor& x, int to) {
    check_message("send", x, to, *this);
    check_host("send", x);
    check();
    Messages& messages = messages_with(to);
    return in_background(
        {call_of("send", x, to), [&wire = messages.wire, x] { return wire.send(x.data_ptr(), bytes_in(x)); }},
        messages.sends);
  }
  std::unique_ptr<Pending> start_recv(const Tensor& x, int from) {
    check_message("recv", x, from, *this);
    check_host("recv", x);
    check();
    Messages& messages = messages_with(from);
    return in_background({call_of("recv", x, from),
                          [&wire = messages.wire, x] { return wire.recv(x.data_ptr(), bytes_in(x)); }},
                         messages.receives);
  }

  struct Call {
    CollectiveCall noted;
    Background::Call run;
  };
  class InBackground;
  using State = RecentCollectives::State;
  /// Messages with one other rank. Each direction has its own thread for calls in the background.
  struct Messages {
    MessageWire wire;
    Background sends = {}, receives = {};
    Messages(int own, int other, Socket socket, const WaitLimits& limits)
        : wire(own, other, std::move(socket), limits) {}
  };

  /// Returns a short name for a connection's purpose, which users see when a rank waits for it.
  static std::string short_name(const std::string& name) {
    return name.size() <= 32 ? name : "group " + hash_hex(name).substr(0, 16);
  }

  static void check_host(const char* op, const Tensor& x) {
    check_whole(op, x);
    TYCHO_CHECK(x.is_cpu(), "[parallel] {}: expected a tensor in host memory, got one on {}", op,
                x.device().str());
  }

  WaitLimits limits() const { return {.broken_fd = run_->peers->broken_fd(), .timeout_s = run_->timeout_s}; }

  // Calls hold their tensors, because calls in the background outlive the caller's.
  Call sum_of(const Tensor& x) {
    check_sum("all_reduce", x);
    check_host("all_reduce", x);
    return {call_of("all_reduce", x),
            [this, x] { return collectives_.all_reduce(sum_type(x), x.data_ptr(), x.numel()); }};
  }
  Call gather(const Tensor& out, const Tensor& in) {
    check_all_gather(out, in, *this);
    check_host("all_gather", in);
    return {call_of("all_gather", in),
            [this, out, in] { return collectives_.all_gather(out.data_ptr(), in.data_ptr(), bytes_in(in)); }};
  }
  Call scatter(const Tensor& out, const Tensor& in) {
    check_reduce_scatter(out, in, *this);
    check_host("reduce_scatter", in);
    return {call_of("reduce_scatter", in), [this, out, in] {
              return collectives_.reduce_scatter(sum_type(in), out.data_ptr(), in.data_ptr(), out.numel());
            }};
  }

  void now(const Call& call) {
    check();
    at_once(call.noted, [&] {
      background_.wait_for_all();
      return call.run();
    });
  }
  /// Records the call, and runs it on this thread.
  template <class Body>
  void at_once(const CollectiveCall& call, Body&& body) {
    const InCollective collective(call.op);
    const uint64_t ticket = noted_.calls->add(noted_.group, call, State::kStarted);
    const std::optional<TransferFailure> failure = timed(body);
    noted_.calls->set_state(ticket, failure ? State::kFailed : State::kDone);
    throw_if(call.op, failure);
  }
  std::unique_ptr<Pending> in_background(Call call, Background& thread);

  void throw_if(const char* op, const std::optional<TransferFailure>& failure) {
    if (!failure) return;
    check();
    run_->failure = explain(op, *failure);
    throw *run_->failure;
  }
  Error explain(const char* op, const TransferFailure& failure) const;

  Messages& messages_with(int other);

  std::shared_ptr<TcpRun> run_;
  std::string name_;
  std::vector<int> ranks_;  // in the world
  int rank_, num_splits_ = 0;
  NotedGroup noted_;
  SocketCollectives collectives_;
  std::map<int, Messages> messages_;  // for ranks that messages were exchanged with
  Background background_;  // declared last: its thread ends before the members that it uses are destroyed
};

class TcpCommunicator::InBackground final : public Pending {
 public:
  InBackground(TcpCommunicator& group, const char* op, Background& thread, Background::Call run)
      : group_(group), op_(op), thread_(thread), state_(thread.start(std::move(run))) {}
  void wait() override {
    const InCollective collective(op_);
    group_.throw_if(op_, thread_.wait(*state_));
  }

 private:
  TcpCommunicator& group_;
  const char* op_;
  Background& thread_;
  std::shared_ptr<Background::State> state_;
};

std::unique_ptr<Pending> TcpCommunicator::in_background(Call call, Background& thread) {
  check();
  const uint64_t ticket = noted_.calls->add(noted_.group, call.noted, State::kQueued);
  auto noting = [calls = noted_.calls, ticket, run = std::move(call.run)] {
    calls->set_state(ticket, State::kStarted);
    std::optional<TransferFailure> failure = timed(run);
    calls->set_state(ticket, failure ? State::kFailed : State::kDone);
    return failure;
  };
  return std::make_unique<InBackground>(*this, call.noted.op, thread, std::move(noting));
}

Error TcpCommunicator::explain(const char* op, const TransferFailure& failure) const {
  if (failure.kind == TransferFailure::Kind::kMismatch)
    return Error(
        fmt::format("[parallel] {}: every rank must make the same calls in the same order", failure.what),
        ExitCode::kTopology);
  std::vector<int> suspects;
  for (const int r : failure.ranks) suspects.push_back(ranks_[static_cast<size_t>(r)]);
  return run_->peers->why_broken(fmt::format("{}: {}", op, failure.what), suspects);
}

TcpCommunicator::Messages& TcpCommunicator::messages_with(int other) {
  const auto found = messages_.find(other);
  if (found != messages_.end()) return found->second;
  const int low = std::min(rank_, other), high = std::max(rank_, other);
  const std::vector<int> both = {ranks_[static_cast<size_t>(low)], ranks_[static_cast<size_t>(high)]};
  std::vector<Socket> sockets =
      run_->peers->connect(fmt::format("{}, messages {}-{}", short_name(name_), low, high), both);
  Socket& socket = sockets[other == low ? 0 : 1];
  WaitLimits until_stopped = limits();
  until_stopped.stop_fd = collectives_.stop_fd();
  return messages_.try_emplace(other, rank_, other, std::move(socket), until_stopped).first->second;
}

std::unique_ptr<Communicator> TcpCommunicator::split(int colour, int key) {
  const Tensor mine = at::tensor({int64_t{colour}, int64_t{key}}, at::kLong);
  Tensor asked = at::empty({size(), 2}, at::kLong);
  all_gather(asked, mine);
  const auto all = asked.accessor<int64_t, 2>();
  std::vector<int> members;  // by rank here
  for (int r = 0; r < size(); ++r)
    if (all[r][0] == colour) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return all[a][1] < all[b][1]; });
  const auto rank = std::find(members.begin(), members.end(), rank_) - members.begin();
  for (int& member : members) member = ranks_[static_cast<size_t>(member)];
  return std::make_unique<TcpCommunicator>(run_, fmt::format("{}/{}.{}", name_, num_splits_++, colour),
                                           std::move(members), static_cast<int>(rank));
}

class TcpRankGroup final : public RankGroup {
 public:
  TcpRankGroup(std::shared_ptr<Peers> peers, double patience_s)
      : peers_(peers), world_(make_tcp_world(std::move(peers), patience_s)) {}
  std::vector<std::string> gather(const std::string& mine) override {
    return all_gather_strings(*world_, mine);
  }
  void mark(const std::string& name) override { peers_->mark(name); }
  bool is_marked(const std::string& name) override {
    const bool marked = peers_->is_marked(name);
    if (!marked && peers_->is_broken()) fail(ExitCode::kTerminated, "[parallel] a rank has gone");
    return marked;
  }

 private:
  std::shared_ptr<Peers> peers_;
  std::unique_ptr<Communicator> world_;
};

}  // namespace

std::unique_ptr<Communicator> make_tcp_world(std::shared_ptr<Peers> peers, double timeout_s, SumOrder order) {
  std::vector<int> ranks(static_cast<size_t>(peers->num_ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const int rank = peers->rank();
  return std::make_unique<TcpCommunicator>(
      std::make_shared<TcpRun>(TcpRun{std::move(peers), timeout_s, order, {}}), "world", std::move(ranks),
      rank);
}

std::unique_ptr<RankGroup> make_tcp_group(std::shared_ptr<Peers> peers, double patience_s) {
  return std::make_unique<TcpRankGroup>(std::move(peers), patience_s);
}

}  // namespace tycho
