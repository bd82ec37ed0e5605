// Where the files of a data set come from: a folder, a web server, or an object store.
#pragma once
#include <string>

namespace tycho {

/// In a folder that is a cache of remote data: what is being fetched, locks, and what was damaged.
inline constexpr const char* kCacheWorkFolder = ".tycho-cache";

struct RemotePlace {
  enum class Kind { kFolder, kHttp, kS3, kHub };
  Kind kind = Kind::kFolder;
  std::string text;    // as it was given, without "/" at its end
  std::string folder;  // kFolder
  std::string bucket,
      prefix;  // kS3: the prefix without "/" around it; kHub: "datasets/owner/name" and the path inside

  /// The same place, one folder further down; "" for itself.
  RemotePlace below(const std::string& split) const;
};

/// What is wrong with the text of a remote, and what to write instead; "" when nothing is.
std::string remote_problem(const std::string& remote);

/// Throws Error (kUnusable) with remote_problem().
RemotePlace parse_remote(const std::string& remote);

/// A path as part of a URL: all but letters, digits, "-._~" and "/" as %XX.
std::string percent_encoded(const std::string& path);

}  // namespace tycho
