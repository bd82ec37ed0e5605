// The lock tells what a killed process left from what another one is writing.
#include "trainer/base/folder_draft.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::string draft_name(const fs::path& place) { return "." + place.filename().string() + ".partial"; }

/// Returns the path with links resolved, so that the folder replaces the target of a link.
fs::path place_of(const std::string& path) {
  std::error_code error;
  fs::path place = fs::weakly_canonical(fs::absolute(path), error);
  if (error) place = fs::absolute(path).lexically_normal();
  return place.has_filename() ? place : place.parent_path();
}

bool names_folder(const std::string& dir, int descriptor) {
  struct stat named, open;
  return ::stat(dir.c_str(), &named) == 0 && ::fstat(descriptor, &open) == 0 && named.st_dev == open.st_dev &&
         named.st_ino == open.st_ino;
}

/// Creates the folder and locks it until the descriptor is closed. Returns -1 when another process holds the
/// lock.
int lock_new_folder(FileOps& files, const std::string& dir) {
  while (true) {
    make_dirs(files, dir);
    const int folder = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT) continue;  // published meanwhile
    if (folder < 0)
      fail(ExitCode::kStorage, "[files] cannot open the folder {}: {}; remove it", dir, std::strerror(errno));
    // Some network file systems know no locks.
    const bool is_ours = ::flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (is_ours && names_folder(dir, folder)) return folder;
    ::close(folder);
    if (!is_ours) return -1;
  }
}

/// Returns true when the folder itself must not be replaced: it is this process's working folder, or a mount
/// point.
bool must_stay(const std::string& path) {
  std::error_code error;
  if (fs::equivalent(path, ".", error)) return true;
  struct stat own, parent;
  return ::stat(path.c_str(), &own) == 0 && ::stat(fs::path(path).parent_path().c_str(), &parent) == 0 &&
         own.st_dev != parent.st_dev;
}

void remove_content(const std::string& dir) {
  for (const auto& entry : fs::directory_iterator(dir)) fs::remove_all(entry.path());
}

}  // namespace

bool is_free_for_draft(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  if (!fs::is_directory(path, error)) return false;
  const fs::path draft = draft_name(place_of(path));
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().filename() != draft) return false;
  return !error;
}

FolderDraft::FolderDraft(FileOps& files, const std::string& path) : files_(files) {
  const fs::path place = place_of(path);
  path_ = place.string();
  inside_ = must_stay(path_);
  dir_ = ((inside_ ? place : place.parent_path()) / draft_name(place)).string();
  try {
    lock_ = lock_new_folder(files_, dir_);
  } catch (const Error&) {
    ::rmdir(dir_.c_str());  // does nothing to what another one left
    throw;
  }
  if (lock_ < 0)
    fail(ExitCode::kFolderOwned,
         "[files] {} is being written by another process; wait for it, or choose another folder", path);
  at_ = dir_;
  try {
    remove_content(dir_);
  } catch (const fs::filesystem_error& error) {
    ::close(lock_);
    fail(ExitCode::kStorage, "[files] cannot remove what is left in {}: {}; remove it yourself", dir_,
         error.code().message());
  }
}

FolderDraft::~FolderDraft() {
  std::error_code error;
  if (!published_) fs::remove_all(at_, error);
  ::close(lock_);
}

void FolderDraft::publish() {
  files_.sync_dir(dir_);
  if (inside_) {
    for (const auto& entry : fs::directory_iterator(dir_))
      files_.rename(entry.path().string(), path_ + "/" + entry.path().filename().string());
    files_.remove_dir(dir_);
    files_.sync_dir(path_);
  } else {
    files_.rename(dir_, path_);
    at_ = path_;
    files_.sync_dir(fs::path(path_).parent_path().string());
  }
  published_ = true;
}

}  // namespace tycho
