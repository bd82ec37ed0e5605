// Exchanges small texts and numbers between ranks: callback failures, commands, and callbacks' reductions.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/callbacks/callback.h"
#include "trainer/comm/communicator.h"

namespace tycho {

/// Returns one text of every rank, by rank. Collective; costs one small reduction while all texts are empty.
std::vector<std::string> all_gather_strings(Communicator& world, const std::string& mine);

/// Returns the signal of the first rank that got one, or 0; `mine`: this rank's. Collective.
int first_signal(Communicator& world, int mine);

/// Runs `part` on every rank and returns when it succeeded on all of them. Collective; `part` is not. When it
/// fails, every rank throws, with one exit code: that of the first rank that failed, which others name. A
/// rank that failed for another reason reports that, too.
void together(Communicator& world, const std::function<void()>& part);

/// Returns reductions for callbacks over a group, which must outlive them.
std::unique_ptr<Dist> make_dist(Communicator& world);

}  // namespace tycho
