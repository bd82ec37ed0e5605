// Checks the lock before every call.
#include "trainer/lock/owned_files.h"

#include <utility>

namespace tycho {
namespace {

class OwnedFile final : public OutputFile {
 public:
  OwnedFile(std::unique_ptr<OutputFile> file, const RunLock& lock) : file_(std::move(file)), lock_(lock) {}

  void write(const void* data, size_t num_bytes) override {
    lock_.check_often();
    file_->write(data, num_bytes);
  }
  void sync() override { file_->sync(); }
  // Blocks that are still in memory are written here.
  void close() override {
    lock_.check_often();
    file_->close();
  }

 private:
  std::unique_ptr<OutputFile> file_;
  const RunLock& lock_;
};

}  // namespace

std::unique_ptr<OutputFile> OwnedFiles::create(const std::string& path, bool direct, Readers readers) {
  lock_.check_often();
  return std::make_unique<OwnedFile>(files_.create(path, direct, readers), lock_);
}

std::unique_ptr<OutputFile> OwnedFiles::append(const std::string& path) {
  lock_.check_often();
  return std::make_unique<OwnedFile>(files_.append(path), lock_);
}

void OwnedFiles::make_dir(const std::string& path) {
  lock_.check_often();
  files_.make_dir(path);
}

void OwnedFiles::rename(const std::string& from, const std::string& to) {
  lock_.check_often();
  files_.rename(from, to);
}

bool OwnedFiles::link(const std::string& from, const std::string& to) {
  lock_.check_often();
  return files_.link(from, to);
}

void OwnedFiles::remove_file(const std::string& path) {
  lock_.check_often();
  files_.remove_file(path);
}

void OwnedFiles::remove_dir(const std::string& path) {
  lock_.check_often();
  files_.remove_dir(path);
}

void OwnedFiles::sync_dir(const std::string& path) { files_.sync_dir(path); }

}  // namespace tycho
