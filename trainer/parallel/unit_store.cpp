// Reduces gradients over ranks.
#include "trainer/parallel/unit_store.h"

namespace tycho {

void ReplicatedUnits::reduce(int unit) {
  Tensor flat = owned()[static_cast<size_t>(unit)].flat_grads();
  on_their_way_.push_back(world_.start_all_reduce(flat));
}

void ReplicatedUnits::finish() {
  for (const std::unique_ptr<Pending>& pending : std::exchange(on_their_way_, {})) pending->wait();
}

std::unique_ptr<UnitStore> make_unit_store(std::vector<FlatUnit> units, Communicator& world) {
  if (world.size() == 1) return std::make_unique<LocalUnits>(std::move(units));
  return std::make_unique<ReplicatedUnits>(std::move(units), world);
}

}  // namespace tycho
