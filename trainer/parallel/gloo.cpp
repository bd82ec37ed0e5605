// Ranks over TCP, by LibTorch's Gloo. The only source that includes Gloo: its headers are Debian's, for their
// declarations; the code is LibTorch's.
#define USE_C10D_GLOO 1  // as LibTorch was built
#include "trainer/parallel/gloo.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Logging.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "trainer/parallel/gather_texts.h"
#include "trainer/parallel/gloo_store.h"
#include "trainer/parallel/rank_registry.h"
#include "trainer/parallel/verb_checks.h"

namespace tycho {
namespace {

using Milliseconds = std::chrono::milliseconds;
using GroupPtr = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

constexpr auto kLook = Milliseconds(200);                    // between looks whether somebody left
constexpr auto kConnect = Milliseconds(60'000);              // for ranks that have all just arrived
constexpr Milliseconds kNeverEnds = std::chrono::years(10);  // Gloo's own limit is that of a collective
constexpr int kWatchTag = 1, kMessageTag = 2;

Milliseconds milliseconds(double seconds) { return Milliseconds(static_cast<int64_t>(seconds * 1000)); }

std::shared_ptr<gloo::transport::Device> network_device(const RankPlace& place) {
  if (on_one_machine(place)) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

Tensor bytes_of(const Tensor& x) { return x.view(-1).view(at::kByte); }

/// Set by another thread.
class Done {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  bool wait_for(Milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

/// A message between two ranks. Gloo has no future for one, so a thread waits for it.
class Message {
 public:
  Message(WorkPtr work, Milliseconds timeout)
      : work_(std::move(work)), thread_([this, timeout] { wait_on_thread(timeout); }) {}
  ~Message() {
    work_->abort();
    thread_.join();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  bool wait_for(Milliseconds time) { return done_.wait_for(time); }
  /// From any thread.
  bool has_failed() const { return has_failed_; }
  /// After wait_for returned true: what Gloo said of a failure.
  const std::string& failure() const { return failure_; }

 private:
  void wait_on_thread(Milliseconds timeout) {
    try {
      has_failed_ = !work_->wait(timeout);
    } catch (const std::exception& error) {
      failure_ = error.what();
      has_failed_ = true;
    }
    done_.set();
  }

  WorkPtr work_;
  std::string failure_;
  std::atomic<bool> has_failed_ = false;
  Done done_;
  std::thread thread_;
};

/// Waits for a message of another rank that never comes: when that rank dies, its connection closes. Ranks
/// that compute for long notice so without a collective of their own.
class Neighbour {
 public:
  Neighbour(GroupPtr group, int rank)
      : group_(std::move(group)),
        tensors_({at::empty({1}, at::kByte)}),
        message_(group_->recv(tensors_, rank, kWatchTag), kNeverEnds) {}
  bool is_gone() const { return message_.has_failed(); }

 private:
  GroupPtr group_;
  std::vector<Tensor> tensors_;
  Message message_;
};

/// What a world and the groups that were split from it share: when one of them breaks, all have.
struct GlooRun {
  GlooRun(const RankPlace& place, const GlooTimeouts& timeouts)
      : store(open_store(place, timeouts.join_s)),
        registry(store, place.rank, place.num_ranks),
        collective_timeout(milliseconds(timeouts.collective_s)) {
    registry.wait_for_all(timeouts.join_s);
    device = network_device(place);
  }

  c10::intrusive_ptr<c10d::Store> store;
  RankRegistry registry;
  Milliseconds collective_timeout;
  std::shared_ptr<gloo::transport::Device> device;
  std::optional<Error> failure;  // what the first group of this rank that noticed said
  GroupPtr world;
  std::unique_ptr<Neighbour> neighbour;  // in the world; last: it ends before the group
};

class GlooCommunicator final : public Communicator {
 public:
  /// Those ranks of the world, of which this one is `ranks[rank]`. `name` is that of the group, "" for the
  /// world. Collective over them.
  GlooCommunicator(std::shared_ptr<GlooRun> run, std::string name, std::vector<int> ranks, int rank)
      : run_(std::move(run)), name_(std::move(name)), ranks_(std::move(ranks)), rank_(rank) {
    guarded([&] {
      auto options = c10d::ProcessGroupGloo::Options::create(std::min(kConnect, run_->collective_timeout));
      options->devices = {run_->device};
      auto store = c10::make_intrusive<c10d::PrefixStore>("group" + name_, run_->store);
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank_, size(), std::move(options));
      group_->setTimeout(run_->collective_timeout);
      if (!run_->world) run_->world = group_;
    });
  }
  // Threads of a broken group may be in collectives that nobody ends any more; they end with the process.
  ~GlooCommunicator() override {
    if (run_->failure) static_cast<void>(group_.release());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }

  void all_reduce(Tensor& x) override { start_all_reduce(x)->wait(); }
  std::unique_ptr<Pending> start_all_reduce(Tensor& x) override {
    check_host("all_reduce", x);
    std::vector<Tensor> tensors = {x};
    return in_flight(guarded([&] { return group_->allreduce(tensors); }));
  }
  void all_gather(Tensor& out, const Tensor& in) override { start_all_gather(out, in)->wait(); }
  std::unique_ptr<Pending> start_all_gather(Tensor& out, const Tensor& in) override {
    check_all_gather(out, in, *this);
    check_host("all_gather", in);
    if (in.numel() == 0) return in_flight(nullptr);
    Tensor to = bytes_of(out), from = bytes_of(in);
    return in_flight(guarded([&] { return group_->_allgather_base(to, from); }));
  }
  void reduce_scatter(Tensor& out, const Tensor& in) override { start_reduce_scatter(out, in)->wait(); }
  std::unique_ptr<Pending> start_reduce_scatter(Tensor& out, const Tensor& in) override;
  void broadcast(Tensor& x, int root) override {
    check_broadcast(x, root, *this);
    check_host("broadcast", x);
    std::vector<Tensor> tensors = {x};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    wait(guarded([&] { return group_->broadcast(tensors, options); }));
  }
  void barrier() override {
    wait(guarded([&] { return group_->barrier(); }));
  }
  void send(const Tensor& x, int to) override {
    check_message("send", x, to, *this);
    check_host("send", x);
    std::vector<Tensor> tensors = {x};
    if (x.numel() > 0) wait_for_message([&] { return group_->send(tensors, to, kMessageTag); });
  }
  void recv(Tensor& x, int from) override {
    check_message("recv", x, from, *this);
    check_host("recv", x);
    std::vector<Tensor> tensors = {x};
    if (x.numel() > 0) wait_for_message([&] { return group_->recv(tensors, from, kMessageTag); });
  }
  std::unique_ptr<Communicator> split(int colour, int key) override;

  void leave(const Error& error) override {
    if (!run_->failure)
      run_->failure = Error("[parallel] this rank has left the group", ExitCode::kTerminated);
    try {
      run_->registry.record_exit(error);
    } catch (const std::exception&) {
      return;  // the store went before us
    }
    run_->registry.wait_for_readers();
  }
  void check() override {
    if (run_->failure) throw *run_->failure;
  }
  bool is_broken() override;
  Error why_broken(const std::string& what) override {
    if (!run_->failure) run_->failure = run_->registry.explain(what, ranks_);
    return *run_->failure;
  }
  RankRegistry& registry() { return run_->registry; }

 private:
  class InFlight;
  std::unique_ptr<Pending> in_flight(WorkPtr work, std::function<void()> finish = {});

  static void check_host(const char* verb, const Tensor& x) {
    check_whole(verb, x);
    TYCHO_CHECK(x.is_cpu(), "[parallel] {}: Gloo's ranks exchange host memory, given a tensor on {}", verb,
                x.device().str());
  }

  /// Runs `body`; what Gloo throws becomes the reason why the groups of this run are broken.
  template <class Body>
  auto guarded(Body&& body) -> decltype(body()) {
    check();
    try {
      return body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw why_broken(error.what());
    }
  }

  // A rank that left may linger with its connections open, so a long wait looks into the registry.
  template <class Awaited>
  void wait_for(Awaited& awaited) {
    while (!awaited.wait_for(kLook))
      if (run_->registry.has_any_left()) throw std::runtime_error("it left");
  }
  void wait(const WorkPtr& work) {
    guarded([&] {
      const auto done = std::make_shared<Done>();
      work->getFuture()->addCallback([done](c10::ivalue::Future&) { done->set(); });
      wait_for(*done);
      work->wait();
    });
  }
  template <class Start>
  void wait_for_message(Start&& start) {
    guarded([&] {
      Message message(start(), run_->collective_timeout);
      wait_for(message);
      if (message.has_failed()) throw std::runtime_error(message.failure());
    });
  }

  std::shared_ptr<GlooRun> run_;
  std::string name_;
  std::vector<int> ranks_;  // in the world
  int rank_, num_splits_ = 0;
  GroupPtr group_;
};

class GlooCommunicator::InFlight final : public Pending {
 public:
  InFlight(GlooCommunicator& group, WorkPtr work, std::function<void()> finish)
      : group_(group), work_(std::move(work)), finish_(std::move(finish)) {}
  void wait() override {
    if (work_) group_.wait(work_);
    if (finish_) finish_();
  }

 private:
  GlooCommunicator& group_;
  WorkPtr work_;
  std::function<void()> finish_;
};

std::unique_ptr<Pending> GlooCommunicator::in_flight(WorkPtr work, std::function<void()> finish) {
  return std::make_unique<InFlight>(*this, std::move(work), std::move(finish));
}

/// out = the sum of the rows of `pieces`, from the first to the last. Overwrites them.
void add_rows(Tensor& out, const Tensor& pieces) {
  Tensor sum = pieces[0];
  if (sum.scalar_type() == at::kBFloat16) sum = sum.to(at::kFloat);
  for (int64_t r = 1; r < pieces.size(0); ++r) sum.add_(pieces[r]);
  out.view(-1).copy_(sum);
}

// Pieces travel as bytes, straight to the rank that adds them: half of what LibTorch's own, an all_reduce of
// everything, sends, and the order of the sum is ours.
std::unique_ptr<Pending> GlooCommunicator::start_reduce_scatter(Tensor& out, const Tensor& in) {
  check_reduce_scatter(out, in, *this);
  check_host("reduce_scatter", in);
  if (in.numel() == 0) return in_flight(nullptr);
  Tensor pieces = at::empty({size(), out.numel()}, in.options());
  Tensor to = bytes_of(pieces), from = bytes_of(in);
  std::vector<int64_t> equal_out, equal_in;
  return in_flight(guarded([&] { return group_->alltoall_base(to, from, equal_out, equal_in); }),
                   [out, pieces]() mutable { add_rows(out, pieces); });
}

std::unique_ptr<Communicator> GlooCommunicator::split(int colour, int key) {
  Tensor asked = at::zeros({size(), 2}, at::kLong);
  asked[rank_][0] = colour;
  asked[rank_][1] = key;
  all_reduce(asked);
  const auto all = asked.accessor<int64_t, 2>();
  std::vector<int> members;  // by rank here
  for (int r = 0; r < size(); ++r)
    if (all[r][0] == colour) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return all[a][1] < all[b][1]; });
  const auto rank = std::find(members.begin(), members.end(), rank_) - members.begin();
  for (int& member : members) member = ranks_[static_cast<size_t>(member)];
  return std::make_unique<GlooCommunicator>(run_, fmt::format("{}/{}.{}", name_, num_splits_++, colour),
                                            std::move(members), static_cast<int>(rank));
}

bool GlooCommunicator::is_broken() {
  const GroupPtr& world = run_->world;
  if (!run_->neighbour)
    run_->neighbour = std::make_unique<Neighbour>(world, (world->getRank() + 1) % world->getSize());
  if (run_->neighbour->is_gone()) return true;
  try {
    return run_->registry.has_any_left();
  } catch (const std::exception&) {
    return true;  // the store went with rank 0
  }
}

std::unique_ptr<GlooCommunicator> make_world(const RankPlace& place, const GlooTimeouts& timeouts) {
  // Gloo writes to ranks that may have gone: that is an error to explain, not the end of this process, and
  // LibTorch need not warn of it (TORCH_CPP_LOG_LEVEL).
  std::signal(SIGPIPE, SIG_IGN);
  c10::initLogging();
  std::vector<int> ranks(static_cast<size_t>(place.num_ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<GlooCommunicator>(std::make_shared<GlooRun>(place, timeouts), "", std::move(ranks),
                                            place.rank);
}

class GlooRankGroup final : public RankGroup {
 public:
  explicit GlooRankGroup(std::unique_ptr<GlooCommunicator> world) : world_(std::move(world)) {}
  std::vector<std::string> gather(const std::string& mine) override { return gather_texts(*world_, mine); }
  void mark(const std::string& name) override { world_->registry().mark(name); }
  bool is_marked(const std::string& name) override { return world_->registry().is_marked(name); }

 private:
  std::unique_ptr<GlooCommunicator> world_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_world(const RankPlace& place, GlooTimeouts timeouts) {
  return make_world(place, timeouts);
}

std::unique_ptr<RankGroup> make_gloo_group(const RankPlace& place, double patience_s) {
  return std::make_unique<GlooRankGroup>(make_world(place, {.collective_s = patience_s}));
}

}  // namespace tycho
