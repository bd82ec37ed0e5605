// A file system whose calls fail on demand, for tests: the n-th call throws, and so do all after it if asked.
#pragma once
#include <memory>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {

/// Counts every call that changes the file system. Call number `fail_at` (from 1) throws Error (kStorage);
/// with `stay_broken` every later one does too, like a disk that is full or gone. A failing write still
/// writes half of its bytes.
class FaultyFiles : public FileOps {
 public:
  explicit FaultyFiles(int fail_at = 0, bool stay_broken = false)
      : fail_at_(fail_at), stay_broken_(stay_broken) {}
  int calls() const { return calls_; }
  bool failed() const { return fail_at_ > 0 && calls_ >= fail_at_; }

  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    check("create", path);
    return std::make_unique<File>(*this, path, FileOps::create(path, direct, readers));
  }
  std::unique_ptr<OutputFile> append(const std::string& path) override {
    check("append", path);
    return std::make_unique<File>(*this, path, FileOps::append(path));
  }
  void make_dir(const std::string& path) override { check("make_dir", path), FileOps::make_dir(path); }
  void rename(const std::string& from, const std::string& to) override {
    check("rename", to), FileOps::rename(from, to);
  }
  void remove_file(const std::string& path) override {
    check("remove_file", path), FileOps::remove_file(path);
  }
  void remove_dir(const std::string& path) override { check("remove_dir", path), FileOps::remove_dir(path); }
  void sync_dir(const std::string& path) override { check("sync_dir", path); }

 private:
  class File : public OutputFile {
   public:
    File(FaultyFiles& owner, std::string path, std::unique_ptr<OutputFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    void write(const void* data, size_t num_bytes) override {
      try {
        owner_.check("write", path_);
      } catch (const Error&) {
        file_->write(data, num_bytes / 2);
        throw;
      }
      file_->write(data, num_bytes);
    }
    void sync() override { owner_.check("sync", path_); }
    void close() override { owner_.check("close", path_), file_->close(); }

   private:
    FaultyFiles& owner_;
    std::string path_;
    std::unique_ptr<OutputFile> file_;
  };

  void check(const char* call, const std::string& path) {
    ++calls_;
    const bool fails = calls_ == fail_at_ || (stay_broken_ && fail_at_ > 0 && calls_ > fail_at_);
    if (fails) fail(ExitCode::kStorage, "[files] cannot {} {}: injected fault", call, path);
  }

  int calls_ = 0;
  int fail_at_;
  bool stay_broken_;
};

}  // namespace tycho
