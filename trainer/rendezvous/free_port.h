// A rendezvous port for ranks of one machine.
#pragma once

namespace tycho {

/// A port of 127.0.0.1 at which nobody listens now; the system hands it out to nobody else for a while.
/// Throws Error (kTopology) when there is none.
int free_port();

}  // namespace tycho
