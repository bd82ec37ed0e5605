// Passes rank 0's token to ranks whose launcher gave them none, in a file that only this user can read.
// Torch-free.
#pragma once
#include <optional>
#include <string>

#include "trainer/rendezvous/rank_info.h"

namespace tycho {

/// Returns the path of the token's file: in a private folder of this user when all ranks are on this machine,
/// else in `shared_dir`, which all ranks see. Throws Error (kTopology) when there is no such folder, and says
/// what to do.
std::string token_path(const RankInfo& place, const std::string& shared_dir);

/// A new token in a file, which the destructor removes.
class JobTokenFile {
 public:
  /// Writes the file, replacing one left by an earlier start. Throws Error (kTopology) when it cannot be
  /// written, or its folder is one where others could have put it.
  JobTokenFile(std::string path, const std::string& job);
  ~JobTokenFile();
  JobTokenFile(const JobTokenFile&) = delete;
  JobTokenFile& operator=(const JobTokenFile&) = delete;
  const std::string& token() const { return token_; }

 private:
  std::string path_, token_;
};

/// Returns the token of the job; nothing while there is none. It may be an old one: read it again when it
/// does not open the listener. Throws Error (kTopology) when the file is a link, not this user's, or can be
/// read by others.
std::optional<std::string> find_token(const std::string& path, const std::string& job);

}  // namespace tycho
