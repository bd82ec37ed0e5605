// Every write of a run goes through this interface, so that a test can make each call fail in turn.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// A file being written. Owned by one thread. Every call loops over short writes and EINTR and throws Error
/// (code kStorage, naming the path and errno) on anything else. The destructor closes without a sync and
/// never throws.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void write(const void* data, size_t num_bytes) = 0;
  /// Makes all written bytes durable (fsync). A failure is final for this file: it is never synced again.
  virtual void sync() = 0;
  /// Closes the file. Throws what close() reports.
  virtual void close() = 0;
};

/// Who may read a new file: everyone whom the umask allows, or only its owner (for files that may hold
/// secrets).
enum class Readers { kUmask, kOwner };

/// The calls that change a file system. One real implementation; tests derive to inject faults.
class FileOps {
 public:
  virtual ~FileOps() = default;
  /// Creates a file that must not exist (O_EXCL). `direct` asks for O_DIRECT and falls back where the file
  /// system refuses it; writes of whole 4096-byte blocks from 4096-aligned memory are then not copied.
  virtual std::unique_ptr<OutputFile> create(const std::string& path, bool direct = false,
                                             Readers readers = Readers::kUmask);
  /// Opens for appending, creating it when absent.
  virtual std::unique_ptr<OutputFile> append(const std::string& path);
  /// Creates one directory, which must not exist.
  virtual void make_dir(const std::string& path);
  virtual void rename(const std::string& from, const std::string& to);
  /// Creates a second name for a file. Returns false when `to` exists. Of several processes that try at once,
  /// on any machine, exactly one gets true.
  virtual bool link(const std::string& from, const std::string& to);
  virtual void remove_file(const std::string& path);
  virtual void remove_dir(const std::string& path);
  /// fsync of a directory: makes names in it durable.
  virtual void sync_dir(const std::string& path);
};

/// The file system of this machine.
FileOps& real_files();

/// Writes `text` to path durably and atomically: path.tmp-<pid>, fsync, rename, fsync of the directory.
void write_file_atomically(FileOps& files, const std::string& path, std::string_view text,
                           Readers readers = Readers::kUmask);
/// Creates every missing folder of the path. Existing folders are fine.
void make_dirs(FileOps& files, const std::string& path);
/// Returns the whole file. Throws Error (kUnusable) that names the path.
std::string read_file(const std::string& path);
/// Reads exactly num_bytes at offset with pread. Throws Error (kUnusable) naming path and offset on a short
/// file.
void read_exactly(const std::string& path, int64_t offset, void* data, size_t num_bytes);

}  // namespace tycho
