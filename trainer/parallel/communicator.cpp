// The world of one: every collective is already done.
#include "trainer/parallel/communicator.h"

namespace tycho {
namespace {

class Done final : public Pending {
 public:
  void wait() override {}
};

class WorldOfOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(Tensor&) override {}
  void broadcast(Tensor&, int) override {}
  void barrier() override {}
};

}  // namespace

std::unique_ptr<Pending> Communicator::start_all_reduce(Tensor& x) {
  all_reduce(x);
  return std::make_unique<Done>();
}

std::unique_ptr<Communicator> make_world_of_one() { return std::make_unique<WorldOfOne>(); }

}  // namespace tycho
