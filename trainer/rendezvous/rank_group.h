// Ranks that exchange texts without tensors. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Used by one thread, but for the marks. Throws Error (kTerminated) when a rank has gone, naming it.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  /// One text of every rank, by rank. Collective.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  /// Not collective, from any thread: a mark that every rank can look for from now on.
  virtual void mark(const std::string& name) = 0;
  virtual bool is_marked(const std::string& name) = 0;
};

}  // namespace tycho
