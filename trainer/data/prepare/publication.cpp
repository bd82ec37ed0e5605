// One file lists the work folders and their final names. It is removed after the last rename.
#include "trainer/data/prepare/publication.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/prepare/conversion_state.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// Visits every count once with its name. Reading and writing both use it.
template <class Split, class Visit>
void visit_counts(Split& split, Visit visit) {
  visit("documents", split.documents);
  visit("bytes", split.bytes);
  visit("tokens", split.tokens);
  visit("dropped_tokens", split.dropped_tokens);
  visit("longest_bytes", split.longest_bytes);
  visit("skipped_rows", split.skipped_rows);
  visit("samples", split.samples);
  visit("shards", split.shards);
}

/// A split that waits to be renamed, or has been renamed already.
struct Pending {
  std::string work_dir;
  ConvertedSplit split;

  bool is_published() const { return !fs::exists(work_dir); }
  bool is_lost() const { return is_published() && !fs::exists(split.dir); }
  bool is_in_use() const { return !is_lost() && is_folder_in_use(is_published() ? split.dir : work_dir); }
};

std::string name_of(const std::string& path) { return fs::path(path).filename(); }

struct Publication {
  std::string key;
  std::vector<Pending> splits;
};

/// Returns nothing for a publication that has ended meanwhile.
std::optional<Publication> read_publication(const std::string& path, const std::string& out_dir) {
  if (::access(path.c_str(), F_OK) != 0) return std::nullopt;
  const Json json = parse_json(read_file(path), path);
  try {
    Publication read{.key = json.at("key"), .splits = {}};
    for (const Json& entry : json.at("splits")) {
      Pending one{.work_dir = out_dir + "/" + entry.at("from").get<std::string>(), .split = {}};
      one.split.dir = out_dir + "/" + entry.at("to").get<std::string>();
      visit_counts(one.split, [&](const char* name, int64_t& count) { entry.at(name).get_to(count); });
      read.splits.push_back(std::move(one));
    }
    return read;
  } catch (const Json::exception&) {
    fail(ExitCode::kUnusable,
         "[data] {} should say which folders a conversion has finished, but is damaged: delete it, and the "
         "folders beside it whose names contain .partial- if nothing is running",
         path);
  }
}

/// Lock that a process holds while it renames its splits, so that conversions that finish at once do so in
/// turn. On a file system without locks, no lock is held.
class PublicationLock {
 public:
  explicit PublicationLock(const std::string& out_dir)
      : folder_(::open(out_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (folder_ >= 0 && ::flock(folder_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~PublicationLock() {
    if (folder_ >= 0) ::close(folder_);
  }
  PublicationLock(const PublicationLock&) = delete;

 private:
  int folder_;
};

/// Throws Error (kUsage) if another conversion has written one of the splits meanwhile.
void check_still_free(const std::vector<SplitWriter*>& writers) {
  for (const SplitWriter* writer : writers)
    if (std::error_code error; fs::exists(writer->dir(), error) && !fs::is_empty(writer->dir(), error))
      fail(ExitCode::kUsage,
           "[data] expected no {}, got one that another conversion has written meanwhile; what this one has "
           "made is removed: use that one, or choose another folder or split",
           writer->dir());
}

void publish(FileOps& files, const std::string& out_dir, const std::vector<Pending>& all) {
  for (const Pending& one : all) {
    if (one.is_published()) continue;
    remove_conversion_state(files, one.work_dir);
    files.rename(one.work_dir, one.split.dir);
  }
  files.sync_dir(out_dir);
}

}  // namespace

void publish_together(FileOps& files, const std::string& out_dir, const std::string& key,
                      const std::vector<SplitWriter*>& writers, const std::vector<ConvertedSplit>& splits) {
  Json entries = Json::array();
  std::vector<Pending> all;
  for (size_t i = 0; i < writers.size(); ++i) {
    Json entry = {{"from", name_of(writers[i]->work_dir())}, {"to", name_of(writers[i]->dir())}};
    visit_counts(splits[i], [&](const char* name, int64_t count) { entry[name] = count; });
    entries.push_back(std::move(entry));
    all.push_back({writers[i]->work_dir(), splits[i]});
  }
  const PublicationLock lock(out_dir);
  check_still_free(writers);
  const std::string path = fmt::format("{}/{}{}", out_dir, kPublication, ::getpid());
  write_file_atomically(files, path, Json({{"key", key}, {"splits", entries}}).dump() + "\n");
  for (SplitWriter* writer : writers) writer->keep();
  publish(files, out_dir, all);
  files.remove_file(path);
}

std::optional<std::vector<ConvertedSplit>> complete_publications(FileOps& files, const std::string& out_dir,
                                                                 const std::string& key) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(out_dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with(kPublication) && name.find(".tmp-") == std::string::npos)
      paths.push_back(it->path());
  }
  std::optional<std::vector<ConvertedSplit>> own;
  for (const std::string& path : paths) {
    const std::optional<Publication> found = read_publication(path, out_dir);
    if (!found || std::ranges::any_of(found->splits, &Pending::is_in_use)) continue;
    // If one split was deleted, the others are not published without it.
    const bool is_whole = std::ranges::none_of(found->splits, &Pending::is_lost);
    if (is_whole) publish(files, out_dir, found->splits);
    files.remove_file(path);
    if (!is_whole || found->key != key) continue;
    own.emplace();
    for (const Pending& one : found->splits) own->push_back(one.split);
  }
  return own;
}

}  // namespace tycho
