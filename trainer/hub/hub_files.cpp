// Decides between the cache and the hub.
#include "trainer/hub/hub_files.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/hub/hub_cache.h"
#include "trainer/hub/hub_client.h"
#include "trainer/hub/hub_fetch.h"
#include "trainer/hub/hub_hash.h"
#include "trainer/hub/hub_pins.h"

namespace tycho {
namespace {

std::atomic<HubAccess>& access_of_process() {
  static std::atomic<HubAccess> access = HubAccess::kFetch;
  return access;
}

bool may_ask(const HubSettings& settings) {
  return !settings.is_offline && access_of_process() != HubAccess::kCacheOnly;
}

/// Refuses to ask the hub, and says what to type on a machine that may.
[[noreturn]] void fail_not_cached(const HubName& name, const HubSettings& settings) {
  fail(ExitCode::kUnusable,
       "[hub] {} is not in the cache of this machine ({}), and {}: run  tycho fetch {}  where the hub can be "
       "reached",
       name.text(), settings.cache,
       settings.is_offline ? "HF_HUB_OFFLINE is set" : "this command opens no connection", name.text());
}

HubName repository_of(const HubName& name) {
  HubName whole = name;
  whole.path.clear();
  return whole;
}

std::string find_commit(const HubName& name, const HubSettings& settings, const HubCache& cache,
                        const std::stop_token& stop) {
  if (is_commit(name.revision)) return name.revision;
  if (const auto commit = pinned_commit(name)) return *commit;
  const std::string revision = name.revision.empty() ? "main" : name.revision;
  const bool asks_again = access_of_process() == HubAccess::kRefresh && !settings.is_offline;
  std::optional<std::string> commit = asks_again ? std::nullopt : cache.read_ref(revision);
  if (!commit) {
    if (!may_ask(settings)) fail_not_cached(name, settings);
    // Ranks of a machine ask once: the others find the answer in the cache.
    cache.make_folders();
    const HubCache::Lock lock = cache.lock("refs", stop);
    if (!asks_again) commit = cache.read_ref(revision);
    if (!commit) commit = HubClient(settings, stop).find_commit(repository_of(name));
    cache.write_ref(revision, *commit);
  }
  pin_hub({{repository_of(name).at(revision).text(), *commit}});
  return *commit;
}

class CachedStream final : public HubStream {
 public:
  explicit CachedStream(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    if (!in_) fail(ExitCode::kUnusable, "[hub] cannot open {}", path);
  }
  size_t read(char* data, size_t num_bytes) override {
    in_.read(data, static_cast<std::streamsize>(num_bytes));
    if (in_.bad()) fail(ExitCode::kStorage, "[hub] cannot read {}", path_);
    return static_cast<size_t>(in_.gcount());
  }

 private:
  std::string path_;
  std::ifstream in_;
};

class PassingStream final : public HubStream {
 public:
  PassingStream(const HubSettings& settings, const HubName& at_commit, const HubFile& file,
                const std::stop_token& stop)
      : shown_(at_commit.below(file.path).text()),
        file_(file),
        client_(settings, stop),
        pieces_(client_, at_commit, file),
        hasher_(file) {}

  size_t read(char* data, size_t num_bytes) override {
    if (used_ == piece_.size() && fetched_ < file_.num_bytes) {
      const int64_t end = std::min(fetched_ + kHubPieceBytes, file_.num_bytes);
      piece_ = pieces_.read(fetched_, end);
      hasher_.update(piece_.data(), piece_.size());
      fetched_ = end, used_ = 0;
    }
    const size_t count = std::min(num_bytes, piece_.size() - used_);
    std::copy_n(piece_.data() + used_, count, data);
    used_ += count;
    if (count == 0 && num_bytes > 0 && !std::exchange(is_checked_, true))
      if (const std::string got = hasher_.hex(); got != file_.hash())
        fail(ExitCode::kUnusable, "[hub] {}: expected the hash {}, got {}: the file is damaged; start again",
             shown_, file_.hash(), got);
    return count;
  }

 private:
  std::string shown_;
  HubFile file_;
  HubClient client_;
  HubPieces pieces_;
  HubHasher hasher_;
  std::string piece_;
  size_t used_ = 0;
  int64_t fetched_ = 0;
  bool is_checked_ = false;
};

const HubFile& file_in(const HubSnapshot& snapshot, const std::string& path) {
  const HubFile* file = snapshot.find(path);
  if (file == nullptr)
    fail(ExitCode::kUnusable, "[hub] {} does not exist: the repository has no such file at {}",
         snapshot.repository.below(path).text(), snapshot.commit());
  return *file;
}

}  // namespace

const HubFile* HubSnapshot::find(const std::string& path) const {
  const auto at =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const HubFile& file, const std::string& name) { return file.path < name; });
  return at != files.end() && at->path == path ? &*at : nullptr;
}

std::vector<const HubFile*> HubSnapshot::below(const std::string& folder) const {
  std::vector<const HubFile*> found;
  for (const HubFile& file : files)
    if (folder.empty() || file.path.starts_with(folder + "/")) found.push_back(&file);
  return found;
}

void set_hub_access(HubAccess access) { access_of_process() = access; }

HubSnapshot open_hub(const HubName& name, const std::stop_token& stop) {
  const HubSettings settings = hub_settings();
  const HubCache cache(settings, name);
  HubSnapshot snapshot;
  const std::string commit = find_commit(name, settings, cache, stop);
  snapshot.repository = repository_of(name).at(commit);
  if (auto tree = cache.read_tree(commit)) {
    snapshot.files = std::move(*tree);
  } else if (!may_ask(settings)) {
    snapshot.files = cache.files_of_snapshot(commit);
    if (snapshot.files.empty()) fail_not_cached(name, settings);
  } else {
    snapshot.files = HubClient(settings, stop).list(snapshot.repository);
    cache.write_tree(commit, snapshot.files);
  }
  return snapshot;
}

std::string hub_file(const HubSnapshot& snapshot, const std::string& path, const std::stop_token& stop) {
  const HubFile& file = file_in(snapshot, path);
  const HubSettings settings = hub_settings();
  const HubCache cache(settings, snapshot.repository);
  if (auto found = cache.find(snapshot.commit(), path, file.num_bytes)) return *found;
  if (!may_ask(settings)) fail_not_cached(snapshot.repository.below(path), settings);
  return fetch_to_cache(HubClient(settings, stop), cache, snapshot.repository, file, stop);
}

std::unique_ptr<HubStream> open_hub_stream(const HubSnapshot& snapshot, const std::string& path,
                                           const std::stop_token& stop) {
  const HubFile& file = file_in(snapshot, path);
  const HubSettings settings = hub_settings();
  const HubCache cache(settings, snapshot.repository);
  if (const auto found = cache.find(snapshot.commit(), path, file.num_bytes))
    return std::make_unique<CachedStream>(*found);
  if (!may_ask(settings)) fail_not_cached(snapshot.repository.below(path), settings);
  return std::make_unique<PassingStream>(settings, snapshot.repository, file, stop);
}

std::string local_path(const std::string& path, const std::stop_token& stop) {
  if (!is_hub_name(path)) return path;
  const HubName name = parse_hub_name(path);
  const HubSettings settings = hub_settings();
  const HubCache cache(settings, name);
  const std::string commit = find_commit(name, settings, cache, stop);
  if (!name.path.empty())
    if (auto found = cache.find(commit, name.path, -1)) return *found;
  const HubSnapshot snapshot = open_hub(name, stop);
  if (snapshot.find(name.path) != nullptr) return hub_file(snapshot, name.path, stop);
  return local_folder(
      path, [](const std::string&) { return true; }, stop);
}

std::string pinned_name(const std::string& text, const std::stop_token& stop) {
  if (!is_hub_name(text)) return text;
  const HubName name = parse_hub_name(text);
  const HubSettings settings = hub_settings();
  return name.at(find_commit(name, settings, HubCache(settings, name), stop)).text();
}

std::string local_folder(const std::string& folder, const std::function<bool(const std::string&)>& is_needed,
                         const std::stop_token& stop) {
  if (!is_hub_name(folder)) return folder;
  const HubName name = parse_hub_name(folder);
  const HubSnapshot snapshot = open_hub(name, stop);
  const std::vector<const HubFile*> files = snapshot.below(name.path);
  if (files.empty())
    fail(ExitCode::kUnusable, "[hub] {} does not exist: the repository has no such file or folder at {}",
         name.text(), snapshot.commit());
  const size_t skipped = name.path.empty() ? 0 : name.path.size() + 1;
  for (const HubFile* file : files)
    if (is_needed(file->path.substr(skipped))) hub_file(snapshot, file->path, stop);
  const std::string root = HubCache(hub_settings(), name).snapshot_folder(snapshot.commit());
  return name.path.empty() ? root : root + "/" + name.path;
}

}  // namespace tycho
