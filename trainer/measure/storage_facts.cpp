// Each fact is found out by trying it, in a folder of its own.
#include "trainer/measure/storage_facts.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <thread>

#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 100;

class Fd {
 public:
  Fd(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string why() { return std::strerror(errno); }

void write_text(const std::string& path, const std::string& text) {
  const Fd file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.is_open() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(ExitCode::kStorage, "[bench] cannot write {}: {}", path, why());
}

/// Tests rename: a reader opens the file again and again while another is renamed over it.
StorageFact try_rename(const std::string& folder) {
  const std::string path = folder + "/file", next = folder + "/next";
  const std::string a(5000, 'a'), b(5000, 'b');
  write_text(path, a);
  std::atomic<bool> is_done = false;
  std::atomic<int> missing = 0, torn = 0;
  std::thread reader([&] {
    std::string text(6000, '\0');
    while (!is_done) {
      const Fd file(path, O_RDONLY);
      if (!file.is_open()) {
        ++missing;
        continue;
      }
      const ssize_t n = ::read(file.get(), text.data(), text.size());
      const std::string found = text.substr(0, static_cast<size_t>(std::max<ssize_t>(n, 0)));
      if (found != a && found != b) ++torn;
    }
  });
  bool works = true;
  for (int i = 0; works && i < kRounds; ++i) {
    write_text(next, i % 2 == 0 ? b : a);
    works = ::rename(next.c_str(), path.c_str()) == 0;
  }
  const std::string reason = works ? "" : why();
  is_done = true;
  reader.join();
  const char* advice = "checkpoints cannot be committed safely here: set run_dir to another file system";
  if (!works) return {"rename", Support::kNo, reason, advice};
  if (torn > 0) return {"rename", Support::kNo, "a reader saw half a file", advice};
  if (missing > 0) return {"rename", Support::kNo, "a reader saw no file", advice};
  return {"rename", Support::kYes, "replaces a file atomically"};
}

/// Tests claims: several threads try to create the same name, and exactly one may succeed.
StorageFact try_claims(const std::string& folder, bool by_link) {
  const std::string path = folder + "/claim", source = folder + "/source";
  write_text(source, "x");
  const char* name = by_link ? "hard links" : "exclusive create";
  const char* advice =
      by_link ? "sweeps with several workers need hard links: keep the sweep's folder elsewhere" : "";
  for (int i = 0; i < kRounds; ++i) {
    std::atomic<int> winners = 0;
    std::atomic<int> reason = 0;
    const auto claim = [&] {
      const bool won = by_link ? ::link(source.c_str(), path.c_str()) == 0
                               : Fd(path, O_WRONLY | O_CREAT | O_EXCL).is_open();
      if (won)
        ++winners;
      else if (errno != EEXIST)
        reason = errno;
    };
    std::thread other(claim);
    claim();
    other.join();
    if (reason != 0) return {name, Support::kNo, std::strerror(reason), advice};
    if (winners != 1)
      return {name, Support::kNo, fmt::format("{} of two won the same name", winners.load()), advice};
    ::unlink(path.c_str());
  }
  return {name, Support::kYes, "exactly one of several wins a name"};
}

StorageFact try_locks(const std::string& folder) {
  const std::string path = folder + "/lock";
  const Fd one(path, O_RDWR | O_CREAT), two(path, O_RDWR);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool ofd = ::fcntl(one.get(), F_OFD_SETLK, &lock) == 0;
  const std::string reason = ofd ? "" : why();
  const bool excludes = ofd && ::fcntl(two.get(), F_OFD_SETLK, &lock) != 0;
  if (excludes) return {"locks", Support::kYes, "exclude other openings of a file"};
  return {"locks", Support::kPartly, ofd ? "do not exclude anybody" : reason,
          "Tycho does not depend on them; other programs may"};
}

StorageFact try_direct(const std::string& folder) {
  constexpr size_t kBytes = 1 << 16;
  const Fd file(folder + "/direct", O_WRONLY | O_CREAT | O_DIRECT);
  const std::unique_ptr<char, void (*)(char*)> memory(
      new (std::align_val_t{4096}) char[kBytes](),
      [](char* p) { ::operator delete[](p, std::align_val_t{4096}); });
  const bool works = file.is_open() && ::write(file.get(), memory.get(), kBytes) == kBytes;
  if (works) return {"O_DIRECT", Support::kYes, "writes past the page cache"};
  return {"O_DIRECT", Support::kPartly, why(), "checkpoints go through the page cache instead"};
}

/// Tests whether a mapping sees data that is written to the file after it was mapped.
StorageFact try_mmap(const std::string& folder) {
  const std::string path = folder + "/map";
  write_text(path, std::string(4096, 'a'));
  const Fd file(path, O_RDWR);
  void* at = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  const char* advice = "data sets cannot be read here: copy them to a local disk";
  if (at == MAP_FAILED) return {"mmap", Support::kNo, why(), advice};
  const volatile char* seen = static_cast<const char*>(at);
  const bool before = seen[100] == 'a';
  const bool wrote = ::pwrite(file.get(), "b", 1, 100) == 1;
  const bool after = seen[100] == 'b';
  ::munmap(at, 4096);
  if (before && wrote && after) return {"mmap", Support::kYes, "sees what is written"};
  if (before) return {"mmap", Support::kPartly, "does not see what is written later", ""};
  return {"mmap", Support::kNo, "shows other bytes than the file has", advice};
}

StorageFact try_sync(const std::string& folder) {
  const std::string path = folder + "/sync";
  write_text(path, "x");
  const Fd file(path, O_WRONLY), dir(folder, O_RDONLY | O_DIRECTORY);
  const char* advice = "a power cut may lose checkpoints here";
  if (::fsync(file.get()) != 0) return {"fsync", Support::kNo, why(), advice};
  if (::fsync(dir.get()) != 0) return {"fsync", Support::kPartly, "of folders: " + why(), advice};
  return {"fsync", Support::kYes, "of files and folders"};
}

/// Tests whether changed data is detectable by time stamp and size.
StorageFact try_times(const std::string& folder) {
  const std::string path = folder + "/time";
  const auto stamp = [&] {
    struct stat info = {};
    ::stat(path.c_str(), &info);
    return std::array{info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  };
  write_text(path, "a");
  const auto before = stamp();
  for (int i = 0; i < 200; ++i) {
    ::usleep(10'000);
    write_text(path, "b");
    if (stamp() != before)
      return {"time stamps", i < 10 ? Support::kYes : Support::kPartly,
              fmt::format("change within {} ms", 10 * (i + 1)),
              i < 10 ? "" : "a file that is rewritten sooner looks unchanged"};
  }
  return {"time stamps", Support::kNo, "do not change within 2 s", "rewritten data is not noticed"};
}

}  // namespace

std::string file_system_name(const std::string& folder) {
  struct statfs info = {};
  if (::statfs(folder.c_str(), &info) != 0) return "unknown";
  static constexpr std::pair<uint32_t, const char*> kNames[] = {
      {0x0BD00BD0, "lustre"}, {0x6969, "nfs"},       {0x65735546, "fuse"},   {0xEF53, "ext4"},
      {0x58465342, "xfs"},    {0x9123683E, "btrfs"}, {0x01021994, "tmpfs"},  {0x794C7630, "overlay"},
      {0x2FC12FC1, "zfs"},    {0x47504653, "gpfs"},  {0x19830326, "beegfs"}, {0x00C36400, "ceph"},
      {0xFF534D42, "cifs"},   {0xFE534D42, "smb2"},  {0xF2F52010, "f2fs"}};
  const auto type = static_cast<uint32_t>(info.f_type);
  for (const auto& [number, name] : kNames)
    if (number == type) return name;
  return fmt::format("0x{:x}", type);
}

std::string file_system_advice(const std::string& name) {
  if (name == "lustre")
    return "stripe the folder of checkpoints, or one server takes every byte of a file: lfs setstripe -c 4 "
           "-S 16M "
           "FOLDER";
  if (name == "fuse")
    return "with blobfuse, read data through a block cache on a local disk (block-size-mb: 16), and write "
           "checkpoints with 32; better, to a local disk";
  if (name == "nfs") return "other machines see changes late, up to the attribute cache's time (actimeo)";
  if (name == "tmpfs")
    return "this is memory: what is written here counts against it, and is gone after a reboot";
  if (name == "overlay")
    return "this is the container's own layer, which ends with the container: keep runs in a mounted folder";
  return "";
}

std::vector<StorageFact> storage_facts(const std::string& folder) {
  std::vector<StorageFact> facts = {try_rename(folder),
                                    try_claims(folder, /*by_link=*/true),
                                    try_claims(folder, /*by_link=*/false),
                                    try_locks(folder),
                                    try_direct(folder),
                                    try_mmap(folder),
                                    try_sync(folder),
                                    try_times(folder)};
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove(entry.path());
  return facts;
}

}  // namespace tycho
