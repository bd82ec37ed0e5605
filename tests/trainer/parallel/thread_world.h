// A group of ranks that are threads of this process, for tests of what ranks agree on.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/parallel/communicator.h"

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
    void all_reduce(Tensor& x) override {
      const std::vector<Tensor> all = exchange(x);
      Tensor sum = all[0].clone();
      for (size_t r = 1; r < all.size(); ++r) sum += all[r];
      x.copy_(sum);
    }
    void broadcast(Tensor& x, int root) override { x.copy_(exchange(x)[static_cast<size_t>(root)]); }
    void barrier() override { world_.barrier_.arrive_and_wait(); }

   private:
    std::vector<Tensor> exchange(const Tensor& x) {
      world_.shared_[static_cast<size_t>(rank_)] = x.clone();
      world_.barrier_.arrive_and_wait();
      std::vector<Tensor> all = world_.shared_;
      world_.barrier_.arrive_and_wait();
      return all;
    }
    ThreadWorld& world_;
    int rank_;
  };

  std::barrier<> barrier_;
  std::vector<Tensor> shared_;
};

}  // namespace tycho
