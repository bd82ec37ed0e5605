// The draft has the file's whole size from the beginning; a second file says which of its pieces are there.
// Two processes without working locks write the same bytes to the same places, which does no harm.
#include "trainer/hub/hub_fetch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/in_parallel.h"
#include "trainer/hub/hub_hash.h"

namespace tycho {
namespace {

constexpr size_t kMostThreads = 8;
constexpr int kMostRenewals = 4;  // of an address, while no piece comes

[[noreturn]] void fail_draft(const std::string& path) {
  const int error = errno;
  const bool is_full = error == ENOSPC || error == EDQUOT;
  fail(ExitCode::kStorage, "[hub] cannot write {}: {}; {}", path, std::strerror(error),
       is_full ? "the disk is full: free room, or set HF_HUB_CACHE to a folder on another disk"
               : "HF_HUB_CACHE chooses another folder for the cache");
}

/// An open file of the cache's blobs.
class Draft {
 public:
  Draft(std::string path, int64_t num_bytes) : path_(std::move(path)) {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file_ < 0) fail_draft(path_);
    struct stat info {};
    if (::fstat(file_, &info) != 0) fail_draft(path_);
    if (info.st_size != num_bytes && ::ftruncate(file_, num_bytes) != 0) fail_draft(path_);
    // Room is reserved where the file system can, so that a full disk shows before hours of download.
    if (num_bytes > 0 && ::fallocate(file_, FALLOC_FL_KEEP_SIZE, 0, num_bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT))
      fail_draft(path_);
  }
  ~Draft() {
    if (file_ >= 0) ::close(file_);
  }
  Draft(const Draft&) = delete;

  /// Returns the path of the open file, which another process may have renamed meanwhile.
  std::string open_path() const { return fmt::format("/proc/self/fd/{}", file_); }
  void write(int64_t at, const char* data, size_t num_bytes) const {
    for (size_t done = 0; done < num_bytes;) {
      const ssize_t n = ::pwrite(file_, data + done, num_bytes - done, at + static_cast<int64_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_draft(path_);
      done += static_cast<size_t>(n);
    }
  }
  std::string read(int64_t num_bytes) const {
    std::string text(static_cast<size_t>(num_bytes), '\0');
    const ssize_t n = ::pread(file_, text.data(), text.size(), 0);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text;
  }
  void sync() const {
    if (::fdatasync(file_) != 0) fail_draft(path_);
  }

 private:
  std::string path_;
  int file_ = -1;
};

int64_t num_pieces_of(const HubFile& file) { return (file.num_bytes + kHubPieceBytes - 1) / kHubPieceBytes; }

/// Fetches the pieces that `done` does not have, several at a time.
void fetch_pieces(HubPieces& pieces, const HubFile& file, const Draft& draft, const Draft& done) {
  const int64_t num_pieces = num_pieces_of(file);
  const std::string marks = done.read(num_pieces);
  in_parallel(static_cast<size_t>(num_pieces), kMostThreads, [&](size_t piece) {
    const auto i = static_cast<int64_t>(piece);
    if (marks[piece] == '1') return;
    const int64_t begin = i * kHubPieceBytes, end = std::min(begin + kHubPieceBytes, file.num_bytes);
    const std::string bytes = pieces.read(begin, end);
    draft.write(begin, bytes.data(), bytes.size());
    done.write(i, "1", 1);
  });
}

/// Returns the hash of the draft, whose pieces are all there.
std::string fetch_draft(const HubClient& client, const HubCache& cache, const HubName& at_commit,
                        const HubFile& file) {
  const Draft draft(cache.blob_path(file) + ".tycho.incomplete", file.num_bytes);
  const Draft done(cache.blob_path(file) + ".pieces.tycho.incomplete", num_pieces_of(file));
  HubPieces pieces(client, at_commit, file);
  fetch_pieces(pieces, file, draft, done);
  draft.sync();
  return hub_hash_of(draft.open_path(), file);
}

void remove_draft(const HubCache& cache, const HubFile& file) {
  ::unlink((cache.blob_path(file) + ".pieces.tycho.incomplete").c_str());
  ::unlink((cache.blob_path(file) + ".tycho.incomplete").c_str());
}

}  // namespace

HubPieces::HubPieces(const HubClient& client, HubName at_commit, HubFile file)
    : client_(client), name_(std::move(at_commit)), file_(std::move(file)) {
  name_.path = file_.path;
}

HubAddress HubPieces::address(int renewal) {
  const std::lock_guard lock(mutex_);
  if (num_located_ > renewal) return address_;  // another thread has asked meanwhile
  address_ = client_.locate(name_);
  ++num_located_;
  if (!address_.commit.empty() && address_.commit != name_.revision)
    fail(ExitCode::kUnusable,
         "[hub] {}: expected a file of this commit, got one of {}: the hub has moved it; {}", name_.text(),
         address_.commit, "start again");
  if (address_.num_bytes >= 0 && address_.num_bytes != file_.num_bytes)
    fail(ExitCode::kUnusable, "[hub] {}: expected {} bytes, as the listing says, got {}", name_.text(),
         file_.num_bytes, address_.num_bytes);
  return address_;
}

std::string HubPieces::read(int64_t begin, int64_t end) {
  int64_t num_read = -1;
  for (int renewals = 0;; ++renewals) {
    int located = 0;
    HubAddress at = address(0);
    {
      const std::lock_guard lock(mutex_);
      located = num_located_, at = address_;
      if (std::exchange(num_read, num_read_) != num_read_) renewals = 0;
    }
    HttpAnswer answer = client_.read(at, begin, end, name_.text());
    const bool is_whole = answer.status == 200 && begin == 0 && end == file_.num_bytes;
    const std::string range = fmt::format("bytes {}-{}/", begin, end - 1);
    const bool is_range = answer.status == 206 && answer.header("content-range").starts_with(range);
    if ((is_whole || is_range) && std::cmp_equal(answer.body.size(), end - begin)) {
      const std::lock_guard lock(mutex_);
      ++num_read_;
      return std::move(answer.body);
    }
    const bool expired =
        answer.status == 401 || answer.status == 403 || answer.status == 404 || answer.status == 410;
    if (!expired || renewals >= kMostRenewals)
      fail(ExitCode::kUnusable, "[hub] {}: expected bytes {} to {}, got status {} with {} bytes{}",
           name_.text(), begin, end, answer.status, answer.body.size(),
           expired ? fmt::format(", though its address was asked for {} times", renewals + 1) : "");
    address(located);
  }
}

std::string fetch_to_cache(const HubClient& client, const HubCache& cache, const HubName& at_commit,
                           const HubFile& file, const std::stop_token& stop) {
  const auto has_blob = [&] {
    struct stat info {};
    return ::stat(cache.blob_path(file).c_str(), &info) == 0 && info.st_size == file.num_bytes;
  };
  const auto found = [&] { return cache.find(at_commit.revision, file.path, file.num_bytes); };
  if (const auto path = found()) return *path;
  const std::string shown = at_commit.below(file.path).text();
  if (file.num_bytes > kMostHubBytes)
    fail(ExitCode::kUnusable,
         "[hub] {} has {}, and the hub serves files above 50 GB to its own client alone: run  hf download "
         "{}{} {} "
         "--revision {}  first; the cache is the same",
         shown, human_bytes(static_cast<double>(file.num_bytes)),
         at_commit.kind == HubName::Kind::kDataset ? "--repo-type dataset " : "", at_commit.id, file.path,
         at_commit.revision);
  cache.make_folders();
  const HubCache::Lock lock = cache.lock(file.hash(), stop);
  if (const auto path = found()) return *path;
  if (has_blob() || cache.take_from_store(file)) return cache.publish(at_commit.revision, file);
  std::string got;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    got = fetch_draft(client, cache, at_commit, file);
    if (got == file.hash()) {
      const std::string draft = cache.blob_path(file) + ".tycho.incomplete";
      if (::rename(draft.c_str(), cache.blob_path(file).c_str()) != 0 &&
          !(errno == ENOENT && (has_blob() || found())))
        fail_draft(cache.blob_path(file));
      remove_draft(cache, file);
      if (const auto path = found()) return *path;
      return cache.publish(at_commit.revision, file);
    }
    remove_draft(cache, file);
  }
  fail(ExitCode::kUnusable,
       "[hub] {}: expected the {} {}, got {}, twice: the file is damaged on its way or on the hub; nothing "
       "was kept",
       shown, file.sha256.empty() ? "git SHA-1" : "SHA-256", file.hash(), got);
}

}  // namespace tycho
