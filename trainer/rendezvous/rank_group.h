// Ranks that exchange texts without tensors. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Used by one thread, except for marks. Throws Error (kTerminated) when a rank has gone, naming it.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  /// Returns one text of every rank, by rank. Collective.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
  /// Sets a mark that every rank can look for from then on. Not collective. From any thread.
  virtual void mark(const std::string& name) = 0;
  virtual bool is_marked(const std::string& name) = 0;
};

}  // namespace tycho
