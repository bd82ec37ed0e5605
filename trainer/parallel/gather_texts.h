// Exchanges small texts and numbers between ranks: callback failures, commands, and callbacks' reductions.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/callbacks/callback.h"
#include "trainer/parallel/communicator.h"

namespace tycho {

/// One text of every rank, by rank. Collective; one small reduction while all of them are empty.
std::vector<std::string> gather_texts(Communicator& world, const std::string& mine);

/// The signal of the first rank that got one, or 0; `mine`: this rank's. Collective.
int first_signal(Communicator& world, int mine);

/// Runs `part` on every rank and goes on when it worked on all of them. Collective; `part` is not. When it
/// fails, every rank throws, with one exit code: that of the first rank that failed, which others name. A
/// rank that failed of something else says that, too.
void together(Communicator& world, const std::function<void()>& part);

/// Reductions for callbacks over a group, which outlives them.
std::unique_ptr<Dist> make_dist(Communicator& world);

}  // namespace tycho
