// The other ranks of a run: connections to them, and their failures. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/rendezvous/recent_collectives.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Used by one thread, except where a function says otherwise. Outlives the connections that it makes.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;

  /// Opens one new connection with every other rank of `ranks`, which includes this rank. Entry i belongs to
  /// ranks[i]; this rank's own entry is closed. Both ends have proved that they belong to this run. Sockets
  /// are blocking, without Nagle's delay. `purpose`: at most 64 characters, equal on all ranks, new each
  /// time. Collective over `ranks`, but no barrier. Throws as why_broken does.
  virtual std::vector<Socket> connect(const std::string& purpose, const std::vector<int>& ranks) = 0;

  /// Descriptor for poll(). It is readable from the moment at which a rank of the world has left, died or
  /// stopped answering, or some seconds after a rank ended well. From any thread.
  virtual int broken_fd() const = 0;
  /// True once the world is broken. From any thread.
  virtual bool is_broken() const = 0;
  /// Returns the reason why the world is broken, equal on all ranks: the words and the exit code of the rank
  /// that left, or an Error naming the rank that is gone or hung (kTerminated: start again). Waits a moment
  /// for that reason. `what`: how this rank noticed; `suspects`: ranks, by their rank in the world, whose
  /// connection to this one broke, or who did not come to a collective. The world is broken afterwards. From
  /// any thread.
  virtual Error why_broken(const std::string& what, const std::vector<int>& suspects) = 0;
  /// Ends this rank's part because of `error`, which all others learn. The first error counts, and all ranks
  /// end with its code. Returns the error that this rank must end with: `error` itself or, when the world had
  /// broken for another reason, an Error that says both.
  virtual Error abort(const Error& error) = 0;

  /// This rank's last collectives. From any thread.
  virtual RecentCollectives& collectives() = 0;
  /// Sets the folder in which each rank writes a file with its last collectives when the ranks end together
  /// because of an error. From any thread.
  virtual void keep_collectives_in(const std::string& folder) = 0;

  /// Sets a mark that every rank sees from then on. From any thread.
  virtual void mark(const std::string& name) = 0;
  virtual bool is_marked(const std::string& name) = 0;
};

}  // namespace tycho
