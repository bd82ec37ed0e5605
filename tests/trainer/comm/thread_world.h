// A group of ranks that are threads of this process, for tests of what ranks agree on.
#pragma once

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/comm/communicator.h"

namespace tycho {

class ThreadWorld {
 public:
  explicit ThreadWorld(int size) : barrier_(size), shared_(static_cast<size_t>(size)) {}

  /// Runs `body` on every rank at once.
  void run(const std::function<void(Communicator&)>& body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < static_cast<int>(shared_.size()); ++r)
      threads.emplace_back([this, r, &body] {
        Rank rank(*this, r);
        body(rank);
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  class Rank final : public Communicator {
   public:
    Rank(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(world_.shared_.size()); }
    void all_reduce(Tensor& x) override { x.copy_(sum(x)); }
    void all_gather(Tensor& out, const Tensor& in) override {
      const std::vector<Tensor> all = exchange(in);
      for (size_t r = 0; r < all.size(); ++r) pieces(out)[static_cast<int64_t>(r)].copy_(all[r].view(-1));
    }
    void reduce_scatter(Tensor& out, const Tensor& in) override {
      out.view(-1).copy_(pieces(sum(in))[rank_]);
    }
    void broadcast(Tensor& x, int root) override { x.copy_(exchange(x)[static_cast<size_t>(root)]); }
    void barrier() override { world_.barrier_.arrive_and_wait(); }
    void send(const Tensor& x, int to) override {
      const std::lock_guard lock(world_.mutex_);
      world_.messages_[{rank_, to}].push_back(x.clone());
      world_.changed_.notify_all();
    }
    void recv(Tensor& x, int from) override {
      std::unique_lock lock(world_.mutex_);
      auto& messages = world_.messages_[{from, rank_}];
      world_.changed_.wait(lock, [&] { return !messages.empty(); });
      x.copy_(messages.front());
      messages.pop_front();
    }
    std::unique_ptr<Communicator> split(int colour, int key) override {
      const std::vector<Tensor> asked = exchange(at::tensor({colour, key}, at::kInt));
      std::vector<std::pair<int, int>> members;  // key, rank
      for (int r = 0; r < size(); ++r) {
        const int* theirs = asked[static_cast<size_t>(r)].data_ptr<int>();
        if (theirs[0] == colour) members.emplace_back(theirs[1], r);
      }
      std::sort(members.begin(), members.end());
      const auto own = std::find(members.begin(), members.end(), std::pair(key, rank_)) - members.begin();
      const std::lock_guard lock(world_.mutex_);
      std::unique_ptr<ThreadWorld>& group = world_.groups_[{num_splits_++, colour}];
      if (!group) group = std::make_unique<ThreadWorld>(static_cast<int>(members.size()));
      return std::make_unique<Rank>(*group, static_cast<int>(own));
    }

   private:
    std::vector<Tensor> exchange(const Tensor& x) {
      world_.shared_[static_cast<size_t>(rank_)] = x.clone();
      world_.barrier_.arrive_and_wait();
      std::vector<Tensor> all = world_.shared_;
      world_.barrier_.arrive_and_wait();
      return all;
    }
    Tensor sum(const Tensor& x) {
      const std::vector<Tensor> all = exchange(x);
      Tensor sum = all[0].clone();
      for (size_t r = 1; r < all.size(); ++r) sum += all[r];
      return sum;
    }
    Tensor pieces(const Tensor& x) const { return x.view({size(), -1}); }

    ThreadWorld& world_;
    int rank_, num_splits_ = 0;
  };

  std::barrier<> barrier_;
  std::vector<Tensor> shared_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<Tensor>> messages_;
  std::map<std::pair<int, int>, std::unique_ptr<ThreadWorld>> groups_;
};

}  // namespace tycho
