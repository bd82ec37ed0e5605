// Commits that revisions of the hub's repositories stand for in this process.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "trainer/recipe/hub_name.h"

namespace tycho {

/// Names of repositories, with their revision ("hf://gpt2@main"), and their commits.
using HubPins = std::map<std::string, std::string>;

/// Fixes commits, such as those of a run that is resumed. From any thread.
void pin_hub(const HubPins& pins);
/// Returns the commit that the revision of `name` is fixed to.
std::optional<std::string> pinned_commit(const HubName& name);
/// Removes all pins: the next use of a revision asks the cache or the hub again.
void forget_hub_pins();
/// Returns all pins, and all commits that were resolved in this process.
HubPins hub_pins();

}  // namespace tycho
