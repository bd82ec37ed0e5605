// Writes beside the object, makes the bytes durable, then gives them their name.
#include "trainer/buckets/folder_bucket.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regular_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kDraft = ".tycho-upload-";
constexpr size_t kPieceBytes = size_t{4} << 20;

/// An open file descriptor.
class Opened {
 public:
  explicit Opened(const std::string& path) : descriptor_(open_regular_file(path)), error_(errno) {}
  ~Opened() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Opened(const Opened&) = delete;
  bool exists() const { return descriptor_ >= 0; }
  bool is_absent() const { return descriptor_ < 0 && (error_ == ENOENT || error_ == ENOTDIR); }
  int get() const { return descriptor_; }
  int error() const { return error_; }
  int64_t num_bytes() const {
    struct stat info {};
    return ::fstat(descriptor_, &info) == 0 ? info.st_size : -1;
  }

 private:
  int descriptor_, error_;
};

bool is_draft(const fs::path& path) { return path.filename().string().starts_with(kDraft); }

double modified_s(const struct stat& info) {
  return static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
}

class FolderBucket final : public Bucket {
 public:
  explicit FolderBucket(std::string folder) : folder_(std::move(folder)) {}

  std::string place_of(const std::string& name) const override { return folder_ + "/" + name; }

  bool put(const std::string& name, const std::string& bytes, PutWhen when,
           const std::stop_token& stop) override {
    return write(name, when, stop, [&](OutputFile& file) { file.write(bytes.data(), bytes.size()); });
  }

  void put_file(const std::string& name, const std::string& path, int64_t num_bytes,
                const UploadOptions& options, const std::stop_token& stop) override {
    const Opened from(path);
    if (!from.exists()) fail_read(path, from.error());
    if (from.num_bytes() != num_bytes)
      fail(ExitCode::kUnusable, "[bucket] {}: expected {} bytes to upload, got {}", path, num_bytes,
           from.num_bytes());
    write(name, PutWhen::kAlways, stop, [&](OutputFile& file) {
      std::vector<char> piece(static_cast<size_t>(std::min<int64_t>(num_bytes, kPieceBytes)));
      for (int64_t at = 0; at < num_bytes;) {
        check_stop(name, stop);
        const size_t n = static_cast<size_t>(std::min<int64_t>(num_bytes - at, kPieceBytes));
        read_all(from, path, at, std::span(piece).first(n));
        file.write(piece.data(), n);
        at += static_cast<int64_t>(n);
        if (options.progress) options.progress(static_cast<int64_t>(n));
      }
    });
  }

  std::optional<std::string> get(const std::string& name, int64_t most_bytes,
                                 const std::stop_token& stop) override {
    const std::string path = checked_path(name, stop);
    const Opened file(path);
    if (file.is_absent()) return std::nullopt;
    if (!file.exists()) fail_read(path, file.error());
    if (file.num_bytes() > most_bytes)
      fail(ExitCode::kUnusable, "[bucket] {}: expected at most {} bytes, got {}", path, most_bytes,
           file.num_bytes());
    std::string bytes(static_cast<size_t>(file.num_bytes()), '\0');
    read_all(file, path, 0, bytes);
    return bytes;
  }

  void read(const std::string& name, int64_t offset, std::span<char> out,
            const std::stop_token& stop) override {
    const std::string path = checked_path(name, stop);
    const Opened file(path);
    if (!file.exists()) fail_read(path, file.error());
    read_all(file, path, offset, out);
  }

  std::vector<StoredObject> list(const std::string& prefix, const std::stop_token& stop) override {
    std::vector<StoredObject> found;
    walk(prefix, stop, [&](const fs::path& path, const std::string& name, const struct stat& info) {
      if (is_draft(path)) return;
      found.push_back(
          {name, info.st_size,
           fmt::format("{}-{}-{}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec),
           modified_s(info)});
    });
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return found;
  }

  void remove(const std::vector<std::string>& names, const std::stop_token& stop) override {
    for (const std::string& name : names) {
      const std::string path = checked_path(name, stop);
      if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
        fail(ExitCode::kStorage, "[bucket] cannot remove {}: {}", path, std::strerror(errno));
      // Stores of objects have no folders, so that an empty one means nothing.
      for (fs::path parent = fs::path(path).parent_path();
           parent.string().size() > folder_.size() && ::rmdir(parent.c_str()) == 0;)
        parent = parent.parent_path();
    }
  }

  int abort_unfinished(const std::string& prefix, double older_than_s, const std::stop_token& stop) override {
    const double now_s =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    int num_removed = 0;
    const size_t slash = prefix.rfind('/');
    walk(prefix.substr(0, slash == std::string::npos ? 0 : slash + 1), stop,
         [&](const fs::path& path, const std::string& name, const struct stat& info) {
           if (!is_draft(path)) return;
           // ".tycho-upload-PID-N-NAME" stands for the object NAME beside it.
           const std::string draft = path.filename();
           const size_t dash = draft.find('-', draft.find('-', kDraft.size()) + 1);
           const std::string object = name.substr(0, name.size() - draft.size()) + draft.substr(dash + 1);
           if (object.starts_with(prefix) && modified_s(info) < now_s - older_than_s &&
               ::unlink(path.c_str()) == 0)
             ++num_removed;
         });
    return num_removed;
  }

 private:
  [[noreturn]] static void fail_read(const std::string& path, int error) {
    fail(ExitCode::kUnusable, "[bucket] cannot read {}: {}", path, std::strerror(error));
  }

  void check_stop(const std::string& name, const std::stop_token& stop) const {
    if (stop.stop_requested()) fail(ExitCode::kTerminated, "[bucket] stopped at {}", place_of(name));
  }

  std::string checked_path(const std::string& name, const std::stop_token& stop) const {
    check_object_name(name, folder_);
    check_stop(name, stop);
    return place_of(name);
  }

  static void read_all(const Opened& file, const std::string& path, int64_t offset, std::span<char> out) {
    for (size_t done = 0; done < out.size();) {
      const ssize_t n =
          ::pread(file.get(), out.data() + done, out.size() - done, offset + static_cast<int64_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_read(path, errno);
      if (n == 0)
        fail(ExitCode::kUnusable, "[bucket] {}: expected {} bytes from byte {} on, got {}", path, out.size(),
             offset, done);
      done += static_cast<size_t>(n);
    }
  }

  /// Writes an object by `fill`. Returns false if kAbsent finds one.
  template <class Fill>
  bool write(const std::string& name, PutWhen when, const std::stop_token& stop, const Fill& fill) {
    static std::atomic<int> number = 0;
    const std::string path = checked_path(name, stop);
    const fs::path parent = fs::path(path).parent_path();
    const std::string draft =
        parent / fmt::format("{}{}-{}-{}", kDraft, ::getpid(), number++, fs::path(path).filename().string());
    FileOps& files = real_files();
    std::unique_ptr<OutputFile> file = create(parent, draft);
    bool is_new = true;
    try {
      fill(*file);
      file->sync();
      file->close();
      if (when == PutWhen::kAlways)
        files.rename(draft, path);
      else
        is_new = files.link(draft, path), files.remove_file(draft);
      files.sync_dir(parent);
    } catch (...) {
      ::unlink(draft.c_str());
      throw;
    }
    return is_new;
  }

  /// Another process may remove the folder between its creation and the file's: remove() takes empty ones.
  static std::unique_ptr<OutputFile> create(const std::string& parent, const std::string& draft) {
    constexpr int kTries = 100;
    for (int left = kTries;; --left) {
      make_dirs(real_files(), parent);
      try {
        return real_files().create(draft);
      } catch (const Error&) {
        if (left == 0 || ::access(parent.c_str(), F_OK) == 0) throw;
      }
    }
  }

  /// Calls `use(path, name, info)` for the files whose names begin with `prefix`, drafts included.
  template <class Use>
  void walk(const std::string& prefix, const std::stop_token& stop, const Use& use) const {
    // Only the folder that the prefix names has to be read.
    const size_t slash = prefix.rfind('/');
    std::vector<std::string> folders = {slash == std::string::npos ? "" : prefix.substr(0, slash + 1)};
    while (!folders.empty()) {
      const std::string folder = std::move(folders.back());
      folders.pop_back();
      std::error_code error;
      for (fs::directory_iterator at(place_of(folder), error), end; !error && at != end;
           at.increment(error)) {
        check_stop(prefix, stop);
        struct stat info {};
        if (::stat(at->path().c_str(), &info) != 0) continue;
        std::string name = folder + at->path().filename().string();
        if (S_ISDIR(info.st_mode) && !at->is_symlink())
          folders.push_back(name + "/");
        else if (S_ISREG(info.st_mode) && name.starts_with(prefix))
          use(at->path(), name, info);
      }
      // Another process may have removed it meanwhile.
      if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
        fail(ExitCode::kUnusable, "[bucket] cannot list {}: {}", place_of(folder), error.message());
    }
  }

  std::string folder_;
};

}  // namespace

std::unique_ptr<Bucket> make_folder_bucket(const std::string& folder) {
  return std::make_unique<FolderBucket>(folder);
}

}  // namespace tycho
