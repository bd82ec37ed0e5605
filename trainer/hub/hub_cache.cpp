// Reads and writes files and links of the layout; nothing here makes a request.
#include "trainer/hub/hub_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/base/regular_file.h"
#include "trainer/hub/hub_hash.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostTreeBytes = int64_t{1} << 30;
constexpr const char* kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag created by huggingface_hub.\n"
    "# For information about cache directory tags, see:\n"
    "#\thttps://bford.info/cachedir/\n";

[[noreturn]] void fail_cache(const char* what, const std::string& path, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  fail(ExitCode::kStorage, "[hub] cannot {} {}: {}; {}", what, path, std::strerror(error),
       is_full ? "the disk is full: free room, or set HF_HUB_CACHE to a folder on another disk"
               : "HF_HUB_CACHE chooses another folder for the cache");
}

void make_parent(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) fail_cache("create", fs::path(path).parent_path().string(), error.value());
}

bool is_regular(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

int64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : -1;
}

bool is_hash(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Returns a name next to `path` that no other process or thread uses.
std::string own_name(const std::string& path, const char* ending) {
  static std::atomic<int> count = 0;
  const fs::path whole(path);
  return (whole.parent_path() /
          fmt::format(".{}.{}-{}{}", whole.filename().string(), ::getpid(), count.fetch_add(1), ending))
      .string();
}

/// Writes a file that appears whole. Not made durable: what is lost is fetched again.
void write_whole(const std::string& path, const std::string& text) {
  make_parent(path);
  const std::string draft = own_name(path, ".tmp");
  {
    std::ofstream out(draft, std::ios::binary);
    out << text;
    out.flush();
    if (!out) {
      const int error = errno;
      ::unlink(draft.c_str());
      fail_cache("write", path, error);
    }
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) fail_cache("write", path, errno);
}

/// Makes `link` a symbolic link to `target`, in place of whatever is there. Returns false where the file
/// system has no links.
bool make_link(const std::string& target, const std::string& link) {
  const std::string draft = own_name(link, ".link");
  if (::symlink(target.c_str(), draft.c_str()) != 0) return false;
  if (::rename(draft.c_str(), link.c_str()) == 0) return true;
  const int error = errno;
  ::unlink(draft.c_str());
  fail_cache("write", link, error);
}

std::string cache_name(const HubName& name) {
  std::string text = name.kind == HubName::Kind::kDataset ? "datasets--" : "models--";
  for (const char c : name.id) text += c == '/' ? "--" : std::string(1, c);
  return text;
}

HubFile file_from(const std::string& path, const Json& entry) {
  HubFile file;
  file.path = path;
  file.git_sha1 = entry.at("blob_id").get<std::string>();
  file.num_bytes = entry.at("size").get<int64_t>();
  if (const Json hash = entry.value("lfs_sha256", Json()); hash.is_string()) file.sha256 = hash;
  if (const Json size = entry.value("lfs_size", Json()); size.is_number_integer()) file.num_bytes = size;
  if (const Json hash = entry.value("xet_hash", Json()); hash.is_string()) file.xet_hash = hash;
  return file;
}

/// Adds a repository's blob to the list of a shared blob's users, as huggingface_hub does before it links.
bool add_reference(const std::string& list, const std::string& blob) {
  const int file = ::open(list.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) return false;
  const std::string line = blob + "\n";
  const bool is_whole = std::cmp_equal(::write(file, line.data(), line.size()), line.size());
  ::fsync(file);
  ::close(file);
  return is_whole;
}

}  // namespace

HubCache::HubCache(const HubSettings& settings, const HubName& name)
    : cache_(settings.cache),
      repository_(cache_name(name)),
      folder_(cache_ + "/" + repository_),
      has_links_(settings.has_links),
      shares_blobs_(settings.shares_blobs) {}

std::optional<std::string> HubCache::read_ref(const std::string& revision) const {
  const std::string path = folder_ + "/refs/" + revision;
  if (size_of(path) < 0 || size_of(path) > 4096) return std::nullopt;
  std::string commit = read_file(path);
  while (!commit.empty() && commit.back() <= ' ') commit.pop_back();
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

void HubCache::write_ref(const std::string& revision, const std::string& commit) const {
  if (!is_commit(revision) && read_ref(revision) != commit)
    write_whole(folder_ + "/refs/" + revision, commit);
}

std::optional<std::vector<HubFile>> HubCache::read_tree(const std::string& commit) const {
  const std::string path = folder_ + "/trees/" + commit + ".json";
  if (size_of(path) < 0) return std::nullopt;
  try {
    const Json tree = Json::parse(read_file_up_to(path, kMostTreeBytes));
    if (tree.value("format_version", 0) != 1) return std::nullopt;
    std::vector<HubFile> files;
    for (const auto& [name, entry] : tree.at("files").items()) files.push_back(file_from(name, entry));
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return files;
  } catch (const Json::exception&) {
    return std::nullopt;  // damaged: it is asked for again
  }
}

void HubCache::write_tree(const std::string& commit, const std::vector<HubFile>& files) const {
  Json entries = Json::object();
  for (const HubFile& file : files) {
    Json entry = {{"size", file.num_bytes}, {"blob_id", file.git_sha1}};
    if (!file.sha256.empty()) entry["lfs_sha256"] = file.sha256, entry["lfs_size"] = file.num_bytes;
    if (!file.xet_hash.empty()) entry["xet_hash"] = file.xet_hash;
    entries[file.path] = std::move(entry);
  }
  write_whole(folder_ + "/trees/" + commit + ".json",
              Json{{"format_version", 1}, {"files", std::move(entries)}}.dump(1));
}

std::vector<HubFile> HubCache::files_of_snapshot(const std::string& commit) const {
  const std::string root = snapshot_folder(commit);
  std::vector<HubFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    const std::string name = path.substr(root.size() + 1);
    if (size_of(path) < 0 || name.ends_with(".link") || name.ends_with(".tmp")) continue;
    HubFile file{.path = name, .num_bytes = size_of(path), .sha256 = "", .git_sha1 = "", .xet_hash = ""};
    const std::string blob = fs::read_symlink(path, error).filename().string();
    error.clear();
    if (is_hash(blob)) (blob.size() == 64 ? file.sha256 : file.git_sha1) = blob;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::optional<std::string> HubCache::find(const std::string& commit, const std::string& path,
                                          int64_t num_bytes) const {
  const std::string whole = snapshot_folder(commit) + "/" + path;
  const int64_t size = size_of(whole);
  return size < 0 || (num_bytes >= 0 && size != num_bytes) ? std::nullopt : std::optional(whole);
}

bool HubCache::take_from_store(const HubFile& file) const {
  if (!shares_blobs_ || !has_links_ || file.xet_hash.size() != 64 || file.sha256.empty() ||
      !is_hash(file.xet_hash))
    return false;
  const std::string marker = cache_ + "/blobs/.huggingface-shared-blobs";
  const std::string inside = "blobs/" + file.xet_hash.substr(0, 2) + "/" + file.xet_hash;
  const std::string stored = cache_ + "/" + inside;
  if (!is_regular(marker) || size_of(marker) > 16 || read_file(marker) != "1\n" || !is_regular(stored) ||
      size_of(stored) != file.num_bytes || hub_hash_of(stored, file) != file.sha256)
    return false;
  make_parent(blob_path(file));
  return add_reference(stored + ".refs", repository_ + "/blobs/" + file.hash()) &&
         make_link("../../" + inside, blob_path(file));
}

std::string HubCache::publish(const std::string& commit, const HubFile& file) const {
  const std::string path = snapshot_folder(commit) + "/" + file.path, blob = blob_path(file);
  if (size_of(path) == file.num_bytes) return path;
  make_parent(path);
  const auto depth = static_cast<size_t>(std::count(file.path.begin(), file.path.end(), '/'));
  std::string target = "../../";
  for (size_t i = 0; i < depth; ++i) target += "../";
  if (has_links_ && make_link(target + "blobs/" + file.hash(), path)) return path;
  // Without links the snapshot has the file itself, as in huggingface_hub. A blob that other snapshots may
  // use is copied, by a hard link where there are those.
  const std::string draft = own_name(path, ".tmp");
  std::error_code error;
  fs::create_hard_link(blob, draft, error);
  if (error) fs::copy_file(blob, draft, error);
  if (error) {
    std::error_code ignored;
    fs::remove(draft, ignored);
    // Where locks do not work, another process may have published the file and removed the blob.
    if (size_of(path) == file.num_bytes) return path;
    fail_cache("write", path, error.value());
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) fail_cache("write", path, errno);
  ::unlink(blob.c_str());
  return path;
}

HubCache::Lock::Lock(Lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

HubCache::Lock::~Lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

HubCache::Lock HubCache::lock(const std::string& name, const std::stop_token& stop) const {
  const std::string path = cache_ + "/.locks/" + repository_ + "/" + name + ".lock";
  make_parent(path);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) return Lock(-1);
  Lock held(file);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return Lock(-1);  // a file system without locks
    if (stop.stop_requested())
      fail(ExitCode::kTerminated, "[hub] stopped while another process fetched {}", name);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return held;
}

void HubCache::make_folders() const {
  make_parent(folder_ + "/blobs/x");
  if (const std::string tag = cache_ + "/CACHEDIR.TAG"; size_of(tag) < 0) write_whole(tag, kCacheTag);
}

}  // namespace tycho
