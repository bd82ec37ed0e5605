// The cache of huggingface_hub 2.4 on this machine: one repository's folder in it.
#pragma once
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trainer/hub/hub_files.h"
#include "trainer/hub/hub_settings.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

/// Folder of a repository: blobs/HASH, snapshots/COMMIT/PATH (links to blobs), refs/REVISION,
/// trees/COMMIT.json and .no_exist/COMMIT/PATH. Every file appears whole, by a rename: the cache is right
/// without locks, which only save work. Errors of writing are Error (kStorage) that name HF_HUB_CACHE. From
/// any thread.
class HubCache {
 public:
  HubCache(const HubSettings& settings, const HubName& name);

  const std::string& folder() const { return folder_; }
  std::string snapshot_folder(const std::string& commit) const { return folder_ + "/snapshots/" + commit; }
  std::string blob_path(const HubFile& file) const { return folder_ + "/blobs/" + file.hash(); }

  /// Returns the commit that the cache knows for a branch, a tag or a ref.
  std::optional<std::string> read_ref(const std::string& revision) const;
  void write_ref(const std::string& revision, const std::string& commit) const;

  /// Returns the cached listing of a commit.
  std::optional<std::vector<HubFile>> read_tree(const std::string& commit) const;
  void write_tree(const std::string& commit, const std::vector<HubFile>& files) const;
  /// Returns the files that the snapshot has, with sizes and the hashes that links tell: for caches that
  /// another client filled without a listing.
  std::vector<HubFile> files_of_snapshot(const std::string& commit) const;

  /// Returns the path of a cached file of the snapshot; nothing if it is absent or has another size than
  /// `num_bytes` (-1: any).
  std::optional<std::string> find(const std::string& commit, const std::string& path,
                                  int64_t num_bytes) const;

  /// Makes blobs/HASH from the store that repositories share, after checking the hash. Returns false if the
  /// store does not have the file.
  bool take_from_store(const HubFile& file) const;
  /// Makes snapshots/COMMIT/PATH from the blob, and returns its path: a link, or where the file system has no
  /// links, the file itself.
  std::string publish(const std::string& commit, const HubFile& file) const;

  /// Holds .locks/REPOSITORY/HASH.lock until it is destroyed; holds nothing where locks do not work.
  class Lock {
   public:
    Lock(Lock&& other) noexcept;
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    friend class HubCache;
    explicit Lock(int descriptor) : descriptor_(descriptor) {}
    int descriptor_ = -1;
  };
  /// Waits for other processes that fetch the same file. Throws Error (kTerminated) on a stop.
  Lock lock(const std::string& name, const std::stop_token& stop) const;
  /// Creates the folders that a download needs, and the tag that makes backups skip the cache.
  void make_folders() const;

 private:
  std::string cache_, repository_, folder_;
  bool has_links_, shares_blobs_;
};

}  // namespace tycho
