// One table for the process: every part of a run sees the same commit.
#include "trainer/hub/hub_pins.h"

#include <mutex>

namespace tycho {
namespace {

std::mutex mutex;
HubPins& table() {
  static HubPins pins;
  return pins;
}

std::string key_of(const HubName& name) {
  HubName whole = name.at(name.revision.empty() ? "main" : name.revision);
  whole.path.clear();
  return whole.text();
}

}  // namespace

void pin_hub(const HubPins& pins) {
  const std::lock_guard lock(mutex);
  for (const auto& [name, commit] : pins) table()[key_of(parse_hub_name(name))] = commit;
}

std::optional<std::string> pinned_commit(const HubName& name) {
  const std::lock_guard lock(mutex);
  const auto found = table().find(key_of(name));
  return found == table().end() ? std::nullopt : std::optional(found->second);
}

void forget_hub_pins() {
  const std::lock_guard lock(mutex);
  table().clear();
}

HubPins hub_pins() {
  const std::lock_guard lock(mutex);
  return table();
}

}  // namespace tycho
