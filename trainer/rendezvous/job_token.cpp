// Writes the token to another name and renames it, so that no rank reads half of it.
#include "trainer/rendezvous/job_token.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/hash.h"
#include "trainer/base/random/random_bytes.h"
#include "trainer/base/secrets.h"
#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/socket.h"

namespace tycho {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr const char* kWayOut =
    "Set TYCHO_TOKEN in the environment of all ranks, to the output of `openssl rand -hex 16`";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail(ExitCode::kTopology, "[ranks] the ranks have no token, and {} cannot hold one: {}. {}", path, why,
       kWayOut);
}

/// Returns a folder that only this user can enter. Creates it if it is missing.
std::string private_folder() {
  const std::string path = fmt::format("/tmp/tycho-{}", geteuid());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) refuse(path, std::strerror(errno));
  struct stat facts = {};
  if (lstat(path.c_str(), &facts) != 0) refuse(path, std::strerror(errno));
  if (!S_ISDIR(facts.st_mode)) refuse(path, "it is not a folder");
  if (facts.st_uid != geteuid()) refuse(path, "it belongs to another user");
  if ((facts.st_mode & 077) != 0) refuse(path, "others may enter it");
  return path;
}

std::string content(const std::string& job, const std::string& token) {
  return fmt::format("tycho token 1\n{}\n{}\n", hash_hex(job), token);
}

void write_whole(const std::string& path, const std::string& text) {
  const Socket file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open() || write(file.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.fd()) != 0)
    refuse(path, std::strerror(errno));
}

}  // namespace

std::string token_path(const RankInfo& place, const std::string& shared_dir) {
  const std::string name =
      hash_hex(fmt::format("{} {} {}", place.source, place.address, place.port)).substr(0, 16);
  if (on_one_machine(place)) return fmt::format("{}/join-{}", private_folder(), name);
  if (!shared_dir.empty()) return fmt::format("{}/.tycho-join-{}", shared_dir, name);
  fail(ExitCode::kTopology,
       "[ranks] the ranks are on several machines and have no token, and there is no run folder to hand it "
       "over in "
       "({}). {}",
       place.source, kWayOut);
}

JobTokenFile::JobTokenFile(std::string path, const std::string& job)
    : path_(std::move(path)), token_(random_hex(kTokenBytes)) {
  register_secret(token_);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const std::string draft = fmt::format("{}.{}", path_, random_hex(4));
  write_whole(draft, content(job, token_));
  if (std::rename(draft.c_str(), path_.c_str()) == 0) return;
  const int error = errno;
  unlink(draft.c_str());
  refuse(path_, std::strerror(error));
}

JobTokenFile::~JobTokenFile() { unlink(path_.c_str()); }

std::optional<std::string> find_token(const std::string& path, const std::string& job) {
  const Socket file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ELOOP) refuse(path, "it is a link");
    if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE) refuse(path, std::strerror(errno));
    // A network file system caches that there was no such file, unless its folder is read.
    if (DIR* folder = opendir(std::filesystem::path(path).parent_path().c_str())) {
      static_cast<void>(readdir(folder));
      closedir(folder);
    }
    return std::nullopt;
  }
  struct stat facts = {};
  if (fstat(file.fd(), &facts) != 0) refuse(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode) || facts.st_nlink > 1) refuse(path, "it is not a file of its own");
  if (facts.st_uid != geteuid()) refuse(path, "it belongs to another user");
  if ((facts.st_mode & 077) != 0) refuse(path, "others may read it");
  std::array<char, 256> bytes;
  const ssize_t n = read(file.fd(), bytes.data(), bytes.size());
  const std::string text(bytes.data(), n > 0 ? static_cast<size_t>(n) : 0);
  const std::string before = content(job, "").substr(0, content(job, "").size() - 1);
  if (!text.starts_with(before) || text.size() != before.size() + 2 * kTokenBytes + 1) return std::nullopt;
  std::string token = text.substr(before.size(), 2 * kTokenBytes);
  register_secret(token);
  return token;
}

}  // namespace tycho
