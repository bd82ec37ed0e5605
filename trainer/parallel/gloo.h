// Ranks that are processes and meet over TCP: LibTorch's Gloo.
#pragma once
#include <memory>

#include "trainer/parallel/communicator.h"
#include "trainer/rendezvous/rank_group.h"
#include "trainer/rendezvous/rank_place.h"

namespace tycho {

struct GlooTimeouts {
  double join_s = 600;  // for all ranks to come
  double collective_s =
      1800;  // for the slowest rank to come to a collective: it may evaluate or save meanwhile
};

/// Meets the other ranks of `place`; collective. For tensors in host memory. Used by one thread.
/// From now on this process ignores SIGPIPE. Ranks on one
/// machine talk over its loopback; others over the interface of the host's name, or of GLOO_SOCKET_IFNAME.
/// Throws Error (kTopology) that names the ranks that did not come.
std::unique_ptr<Communicator> make_gloo_world(const RankPlace& place, GlooTimeouts timeouts = {});

/// The same meeting for texts. `patience_s`: how long a rank waits in gather for the others, who may wait for
/// a person.
std::unique_ptr<RankGroup> make_gloo_group(const RankPlace& place, double patience_s);

}  // namespace tycho
