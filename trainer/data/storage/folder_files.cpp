// Reads files in pieces, so that a stop is noticed and memory stays small.
#include "trainer/data/storage/folder_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

constexpr size_t kCopyBytes = 1 << 20;

class FolderFiles final : public RemoteFiles {
 public:
  explicit FolderFiles(std::string folder) : folder_(std::move(folder)) {}

  std::string place_of(const std::string& name) const override { return folder_ + "/" + name; }

  FetchOutcome fetch(const std::string& name, const FetchOptions& options, FetchSink& sink) override {
    const int file = open_regular_file(place_of(name));
    if (file < 0) return failure("open");
    FetchOutcome outcome;
    try {
      outcome = copy(file, options, sink);
    } catch (...) {
      ::close(file);
      throw;
    }
    ::close(file);
    return outcome;
  }

 private:
  static FetchOutcome failure(const char* what) {
    const int error = errno;
    const std::string problem = fmt::format("cannot {} it: {}", what, std::strerror(error));
    if (error == ENOENT || error == ENOTDIR) return {FetchOutcome::State::kAbsent, problem};
    // A network file system that restarts returns these for a while.
    const bool passes = error == EIO || error == ESTALE || error == ETIMEDOUT || error == EAGAIN;
    return {passes ? FetchOutcome::State::kFailed : FetchOutcome::State::kRefused, problem};
  }

  static FetchOutcome copy(int file, const FetchOptions& options, FetchSink& sink) {
    struct stat info {};
    if (::fstat(file, &info) != 0) return failure("read");
    FetchOutcome outcome;
    outcome.version =
        fmt::format("{}-{}-{}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    int64_t at = options.version.empty() || options.version == outcome.version ? options.offset : 0;
    if (at > info.st_size) at = 0;
    sink.begin(at);
    std::vector<char> piece(kCopyBytes);
    while (true) {
      if (options.stop.stop_requested()) return {FetchOutcome::State::kStopped, "stopped"};
      const ssize_t n = ::pread(file, piece.data(), piece.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure("read");
      if (n == 0) return outcome;
      sink.write(piece.data(), static_cast<size_t>(n));
      at += n;
    }
  }

  std::string folder_;
};

}  // namespace

std::unique_ptr<RemoteFiles> make_folder_files(const std::string& folder) {
  return std::make_unique<FolderFiles>(folder);
}

}  // namespace tycho
