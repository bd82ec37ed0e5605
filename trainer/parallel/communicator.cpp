// The world of one: every collective is already done.
#include "trainer/parallel/communicator.h"

namespace tycho {
namespace {

class WorldOfOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(Tensor&) override {}
  void broadcast(Tensor&, int) override {}
  void barrier() override {}
};

}  // namespace

std::unique_ptr<Communicator> make_world_of_one() { return std::make_unique<WorldOfOne>(); }

}  // namespace tycho
