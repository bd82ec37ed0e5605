// Files are written from their beginning to their end, so what a killed copy leaves is whole blocks and a
// part of one.
#include "trainer/checkpoint/fetched_checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"

namespace tycho {
namespace {

/// The right to write a folder, until the end of the process or of this object.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0)
      fail(ExitCode::kStorage, "[checkpoint] cannot open {}: {}; name another folder", folder,
           std::strerror(errno));
    // File systems without locks are written without one.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(descriptor_);
    fail(ExitCode::kFolderOwned, "[checkpoint] another process is writing {}: wait for it, or end it",
         folder);
  }
  ~FolderLock() { ::close(descriptor_); }
  FolderLock(const FolderLock&) = delete;

 private:
  int descriptor_;
};

int64_t size_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

int64_t block_bytes(const FileRecord& record, size_t block) {
  return std::min(kHashBlockBytes, record.num_bytes - static_cast<int64_t>(block) * kHashBlockBytes);
}

/// Returns the number of blocks at the beginning of a file of this machine that are as recorded.
size_t num_right(const std::string& path, const FileRecord& record, std::vector<char>& buffer) {
  const int64_t there = size_of(path);
  for (size_t block = 0; block < record.blocks.size(); ++block) {
    const int64_t begin = static_cast<int64_t>(block) * kHashBlockBytes, n = block_bytes(record, block);
    if (there < begin + n) return block;
    read_exactly(path, begin, buffer.data(), static_cast<size_t>(n));
    if (hash_hex({buffer.data(), static_cast<size_t>(n)}) != record.blocks[block]) return block;
  }
  return record.blocks.size();
}

FetchedFile fetch_file(const CheckpointInfo& from, FileOps& files, const std::string& folder,
                       const FileRecord& record, std::vector<char>& buffer) {
  const std::string path = folder + "/" + record.name;
  const size_t first = num_right(path, record, buffer);
  const int64_t kept = std::min(static_cast<int64_t>(first) * kHashBlockBytes, record.num_bytes);
  if (first == record.blocks.size() && size_of(path) == record.num_bytes)
    return {.name = record.name, .num_bytes = record.num_bytes};
  if (size_of(path) > kept && ::truncate(path.c_str(), kept) != 0)
    fail(ExitCode::kStorage, "[checkpoint] cannot shorten {}: {}; remove it and try again", path,
         std::strerror(errno));
  const auto file = files.append(path);
  for (size_t block = first; block < record.blocks.size(); ++block) {
    const auto n = static_cast<size_t>(block_bytes(record, block));
    from.read(record.name, static_cast<int64_t>(block) * kHashBlockBytes, buffer.data(), n);
    if (const std::string found = hash_hex({buffer.data(), n}); found != record.blocks[block])
      fail(ExitCode::kUnusable,
           "[checkpoint] {}/{} is damaged in block {}: XXH3-128 {} is recorded, {} was read; fetch an older "
           "checkpoint by its place",
           from.path, record.name, block, record.blocks[block], found);
    file->write(buffer.data(), n);
  }
  file->sync();
  file->close();
  return {.name = record.name, .num_bytes = record.num_bytes, .num_fetched = record.num_bytes - kept};
}

}  // namespace

CheckpointInfo fetch_checkpoint(const CheckpointInfo& from, FileOps& files, const std::string& dir,
                                const std::function<void(const FetchedFile&)>& on_file) {
  TYCHO_CHECK(from.read, "[checkpoint] expected a checkpoint in a store, got the folder {}", from.path);
  const Manifest manifest = manifest_from_json(from.manifest, from.path);
  const std::string folder = dir + "/" + checkpoint_folder_name(from.step, from.uuid);
  const std::string commit = folder + "/" + kCommitFile, text = commit_text(from.manifest);
  make_dirs(files, folder);
  const FolderLock lock(folder);
  int64_t missing = 0;
  for (const FileRecord& record : manifest.files)
    missing +=
        record.num_bytes - std::clamp(size_of(folder + "/" + record.name), int64_t{0}, record.num_bytes);
  if (const int64_t free = free_bytes(folder); free >= 0 && free < missing)
    fail(ExitCode::kStorage,
         "[checkpoint] {} needs {} bytes and has {} free: make room, or name another folder", folder, missing,
         free);
  std::vector<char> buffer(static_cast<size_t>(kHashBlockBytes));
  for (const FileRecord& record : manifest.files) {
    const FetchedFile fetched = fetch_file(from, files, folder, record, buffer);
    if (on_file) on_file(fetched);
  }
  files.sync_dir(folder);
  write_file_atomically(files, commit, text);
  files.sync_dir(dir);
  return find_checkpoint(folder);
}

}  // namespace tycho
