// Ranks over TCP, by LibTorch's Gloo. The only source that includes Gloo: its headers are Debian's, for their
// declarations; the code is LibTorch's.
#define USE_C10D_GLOO 1  // as LibTorch was built
#include "trainer/parallel/gloo.h"

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "trainer/parallel/gather_texts.h"
#include "trainer/parallel/roll.h"

namespace tycho {
namespace {

using Milliseconds = std::chrono::milliseconds;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

constexpr auto kLook = Milliseconds(200);  // between looks whether somebody left

Milliseconds milliseconds(double seconds) { return Milliseconds(static_cast<int64_t>(seconds * 1000)); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool on_one_machine(const RankPlace& place) { return place.num_local_ranks == place.num_ranks; }

/// Rank 0's port, for this machine alone. The store closes it.
int listen_on_loopback(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 128) != 0) {
    const int error = errno;
    close(fd);
    fail(ExitCode::kTopology, "[parallel] rank 0 cannot listen on port {}: {}; another run may be using it",
         port, strerror(error));
  }
  return fd;
}

/// The keys of one job at the port where its ranks meet.
c10::intrusive_ptr<c10d::Store> open_store(const RankPlace& place, const GlooTimeouts& timeouts) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.waitWorkers = false;
  options.timeout = milliseconds(timeouts.join_s);
  if (options.isServer && on_one_machine(place)) options.masterListenFd = listen_on_loopback(place.port);
  const std::string host = on_one_machine(place) ? "127.0.0.1" : place.address;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
    return c10::make_intrusive<c10d::PrefixStore>("tycho/" + place.token, std::move(store));
  } catch (const std::exception& error) {
    if (place.rank == 0)
      fail(ExitCode::kTopology, "[parallel] rank 0 cannot listen on port {}: {}", place.port,
           first_line(error.what()));
    fail(ExitCode::kTopology, "[parallel] rank {} did not find rank 0 at {}:{} within {:.0f} s ({}): {}",
         place.rank, host, place.port, timeouts.join_s, place.source, first_line(error.what()));
  }
}

std::shared_ptr<gloo::transport::Device> network_device(const RankPlace& place) {
  if (on_one_machine(place)) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  return c10d::ProcessGroupGloo::createDefaultDevice();
}

/// Set by a thread of Gloo.
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

/// Waits on a thread of its own for a message of another rank that never comes: when that rank dies, its
/// connection closes. Ranks that compute for long notice so without a collective of their own.
class Neighbour {
 public:
  Neighbour(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, int rank)
      : group_(std::move(group)),
        tensors_({at::empty({1}, at::kByte)}),
        work_(group_->recv(tensors_, rank, kTag)) {
    thread_ = std::thread([this] {
      try {
        work_->wait();
      } catch (const std::exception&) {
        gone_ = true;
      }
    });
  }
  ~Neighbour() {
    work_->abort();
    thread_.join();
  }
  bool is_gone() const { return gone_; }

 private:
  static constexpr int kTag = 1;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::vector<Tensor> tensors_;
  WorkPtr work_;
  std::atomic<bool> gone_ = false;
  std::thread thread_;
};

class GlooWorld final : public Communicator {
 public:
  GlooWorld(const RankPlace& place, const GlooTimeouts& timeouts)
      : rank_(place.rank),
        size_(place.num_ranks),
        store_(open_store(place, timeouts)),
        roll_(store_, rank_, size_) {
    roll_.call(timeouts.join_s);
    auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(timeouts.collective_s));
    options->devices = {network_device(place)};
    try {
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, rank_, size_, std::move(options));
    } catch (const std::exception& error) {
      throw roll_.explain(error.what());
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(Tensor& x) override { start_all_reduce(x)->wait(); }
  std::unique_ptr<Pending> start_all_reduce(Tensor& x) override {
    std::vector<Tensor> tensors = {x};
    return std::make_unique<InFlight>(*this, started([&] { return group_->allreduce(tensors); }));
  }
  void broadcast(Tensor& x, int root) override {
    std::vector<Tensor> tensors = {x};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    wait(started([&] { return group_->broadcast(tensors, options); }));
  }
  void barrier() override {
    wait(started([&] { return group_->barrier(); }));
  }

  void leave(const Error& error) override {
    forget_group();
    try {
      roll_.say_why(error);
    } catch (const std::exception&) {
      return;  // the store went before us
    }
    roll_.wait_for_readers();
  }

  bool is_broken() override {
    if (!neighbour_) neighbour_ = std::make_unique<Neighbour>(group_, (rank_ + 1) % size_);
    if (neighbour_->is_gone()) return true;
    try {
      return roll_.somebody_left();
    } catch (const std::exception&) {
      return true;  // the store went with rank 0
    }
  }
  Error why_broken(const std::string& what) override {
    forget_group();
    return roll_.explain(what);
  }

  Roll& roll() { return roll_; }

 private:
  class InFlight final : public Pending {
   public:
    InFlight(GlooWorld& world, WorkPtr work) : world_(world), work_(std::move(work)) {}
    void wait() override { world_.wait(work_); }

   private:
    GlooWorld& world_;
    WorkPtr work_;
  };

  template <class Start>
  WorkPtr started(Start&& start) {
    if (!group_) fail(ExitCode::kTerminated, "[parallel] this rank has left the group");
    try {
      return start();
    } catch (const std::exception& error) {
      forget_group();
      throw roll_.explain(error.what());
    }
  }

  // A rank that left may keep its connections open for a while, so a long wait checks the list of ranks.
  void wait(const WorkPtr& work) {
    try {
      const auto done = std::make_shared<Done>();
      work->getFuture()->addCallback([done](c10::ivalue::Future&) { done->set(); });
      while (!done->wait_for(kLook))
        if (roll_.somebody_left()) throw std::runtime_error("it left");
      work->wait();
    } catch (const std::exception& error) {
      forget_group();
      throw roll_.explain(error.what());
    }
  }

  // Its threads may be in collectives that nobody ends any more; they end with the process.
  void forget_group() { static_cast<void>(group_.release()); }

  int rank_, size_;
  c10::intrusive_ptr<c10d::Store> store_;
  Roll roll_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::unique_ptr<Neighbour> neighbour_;  // last: it ends before the group
};

class GlooGroup final : public RankGroup {
 public:
  GlooGroup(const RankPlace& place, const GlooTimeouts& timeouts) : world_(place, timeouts) {}
  std::vector<std::string> gather(const std::string& mine) override { return gather_texts(world_, mine); }
  void mark(const std::string& name) override { world_.roll().mark(name); }
  bool is_marked(const std::string& name) override { return world_.roll().is_marked(name); }

 private:
  GlooWorld world_;
};

/// Gloo writes to ranks that may have gone: that is an error to explain, not the end of this process, and
/// LibTorch need not warn of it (TORCH_CPP_LOG_LEVEL).
void prepare_process() {
  std::signal(SIGPIPE, SIG_IGN);
  c10::initLogging();
}

}  // namespace

std::unique_ptr<Communicator> make_gloo_world(const RankPlace& place, GlooTimeouts timeouts) {
  prepare_process();
  return std::make_unique<GlooWorld>(place, timeouts);
}

std::unique_ptr<RankGroup> make_gloo_group(const RankPlace& place, double patience_s) {
  prepare_process();
  return std::make_unique<GlooGroup>(place, GlooTimeouts{.collective_s = patience_s});
}

}  // namespace tycho
