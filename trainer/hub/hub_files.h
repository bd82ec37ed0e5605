// Files of repositories on the Hugging Face hub: in the cache of this machine, or fetched from the hub.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/recipe/hub_name.h"

namespace tycho {

/// One file of a repository at a commit.
struct HubFile {
  std::string path;  // inside the repository
  int64_t num_bytes = 0;
  std::string sha256;    // for large files; "" for those that git stores itself
  std::string git_sha1;  // hash of git's blob; for a large file, of the pointer that git stores instead
  std::string xet_hash;  // "" if the file is not in Xet's storage

  /// Returns the hash that the file is checked against, and its name in the cache.
  const std::string& hash() const { return sha256.empty() ? git_sha1 : sha256; }
};

/// All files of a repository at a commit, by path.
struct HubSnapshot {
  HubName repository;  // its revision is the commit; its path is ""
  std::vector<HubFile> files;

  const std::string& commit() const { return repository.revision; }
  /// Returns the file with this path; nullptr if there is none.
  const HubFile* find(const std::string& path) const;
  /// Returns the files in a folder and all folders below it, in order; all files for "".
  std::vector<const HubFile*> below(const std::string& folder) const;
};

/// Requests that this process may make.
enum class HubAccess {
  kCacheOnly,
  kFetch,   // what the cache lacks
  kRefresh  // in addition, the commits that branches and tags now have
};

/// Sets the access of this process; kFetch without a call. Call before other threads start. HF_HUB_OFFLINE
/// has the effect of kCacheOnly.
void set_hub_access(HubAccess access);

/// Returns the files of the repository of `name` at its revision. The commit is the pinned one (hub_pins.h),
/// else the one that the cache has for this revision, else the hub's answer, which the cache keeps. Makes no
/// request for a commit whose listing is cached. Throws Error: kUnusable if the hub refuses (with what to do)
/// or may not be asked (with the `tycho fetch` line), kStorage if it cannot be reached after retries or the
/// cache cannot be written, kTerminated on a stop.
HubSnapshot open_hub(const HubName& name, const std::stop_token& stop = {});

/// Returns the path of a file on this machine. Fetches and verifies the file unless the cache has it. Throws
/// like open_hub(), and kUnusable if the repository has no such file.
std::string hub_file(const HubSnapshot& snapshot, const std::string& path, const std::stop_token& stop = {});

/// Reads a file from its beginning to its end. Owned by one thread.
class HubStream {
 public:
  virtual ~HubStream() = default;
  /// Reads at most `num_bytes`; returns 0 at the end. Throws like hub_file(), also if the bytes that came do
  /// not have the file's hash: callers must not publish what they made before read() returned 0.
  virtual size_t read(char* data, size_t num_bytes) = 0;
};

/// Opens a file: the cached one, else its bytes from the hub, which are not kept.
std::unique_ptr<HubStream> open_hub_stream(const HubSnapshot& snapshot, const std::string& path,
                                           const std::stop_token& stop = {});

/// Returns `path` as it is, unless it begins with hf://. Otherwise returns the path on this machine of that
/// file, or of the snapshot's folder with all files below that name, fetched as needed.
std::string local_path(const std::string& path, const std::stop_token& stop = {});

/// Returns the name with its commit as the revision; other texts as they are. Throws like open_hub().
std::string pinned_name(const std::string& name, const std::stop_token& stop = {});

/// Returns local_path() of a folder of the hub, or of a repository, for which only files that `is_needed`
/// (called with the path inside the folder) are fetched.
std::string local_folder(const std::string& folder, const std::function<bool(const std::string&)>& is_needed,
                         const std::stop_token& stop = {});

}  // namespace tycho
