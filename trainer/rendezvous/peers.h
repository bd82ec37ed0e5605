// The other ranks of a run: connections to them, and whether they are still alive. Torch-free.
#pragma once
#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/rendezvous/recent_collectives.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Used by one thread, except where a function says otherwise. Outlives what it connects.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;

  /// One new connection with every other rank of `ranks` (this rank is among them); entry i belongs to
  /// ranks[i], and this rank's own entry is not open. Both ends have proved that they belong to this run.
  /// Blocking, without Nagle's delay. `purpose`: at most 64 characters, the same on all of them, new each
  /// time. Collective over `ranks`, but no barrier. Throws as why_broken does.
  virtual std::vector<Socket> connect(const std::string& purpose, const std::vector<int>& ranks) = 0;

  /// For poll(): readable from the moment at which a rank of the world has left, died or stopped answering,
  /// or some seconds after it ended well. From any thread.
  virtual int broken_fd() const = 0;
  /// From any thread.
  virtual bool is_broken() const = 0;
  /// Why the world is broken: in the words and with the exit code of the rank that left, or naming the one
  /// that is gone or hung (kTerminated: start again). The same on all ranks. Waits a moment for the news.
  /// `what`: how this rank noticed; `suspects`: ranks whose connection to this one broke, or who did not come
  /// to a collective, by their rank in the world. The world is broken from now on. From any thread.
  virtual Error why_broken(const std::string& what, const std::vector<int>& suspects) = 0;
  /// This rank ends because of `error`; all others learn it. The first reason stays, and all ranks end with
  /// its code: returns what this one is to end with, `error` itself or, when the world had broken for another
  /// reason, an Error that says both.
  virtual Error leave(const Error& error) = 0;

  /// What this rank called last. From any thread.
  virtual RecentCollectives& collectives() = 0;
  /// When the ranks end together because of an error, each leaves a file with its last collectives in
  /// `folder`. From any thread.
  virtual void keep_collectives_in(const std::string& folder) = 0;

  /// From any thread: a mark that every rank sees from now on.
  virtual void mark(const std::string& name) = 0;
  virtual bool is_marked(const std::string& name) = 0;
};

}  // namespace tycho
