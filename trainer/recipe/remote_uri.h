// Location of the files of a remote data set: a folder, a web server, or an object store.
#pragma once
#include <string>

namespace tycho {

/// Subfolder of a cache of remote data. It holds partial downloads, locks and damaged files.
inline constexpr const char* kCacheWorkFolder = ".tycho-cache";

struct RemoteUri {
  enum class Kind { kFolder, kHttp, kS3, kHub, kAzure };
  Kind kind = Kind::kFolder;
  std::string text;            // as given, without a trailing "/"; kHub: see HubName::text
  std::string folder;          // kFolder
  std::string bucket, prefix;  // kS3: the prefix without "/" around it

  std::string account;   // kAzure, whose container is the bucket
  std::string endpoint;  // kS3, kAzure: URL of the store that the text names; "" for the usual one

  /// Returns the folder `split` inside this one; this one for "".
  RemoteUri below(const std::string& split) const;
};

/// Says what is wrong with the text of a remote, and what to write instead. Returns "" if nothing is.
std::string remote_problem(const std::string& remote);

/// Parses the text of a remote. Throws Error (kUnusable) with remote_problem().
RemoteUri parse_remote(const std::string& remote);

/// Encodes a path for a URL: all characters but letters, digits, "-._~" and "/" become %XX.
std::string percent_encoded(const std::string& path);

}  // namespace tycho
