// A process that dies in the middle of a call: the n-th change of the file system, and every one after it,
// never happens.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Thrown instead of an Error: nobody may catch it and tidy up, as nobody can after SIGKILL.
struct Died {};

/// Dies at call `at` (from 1; 0: never). A write at that call leaves `half` of its bytes, or none.
class DyingFiles : public FileOps {
 public:
  explicit DyingFiles(int at = 0, bool half = false) : at_(at), half_(half) {}
  int calls() const { return calls_; }

  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    live();
    return std::make_unique<File>(*this, FileOps::create(path, direct, readers));
  }
  std::unique_ptr<OutputFile> append(const std::string& path) override {
    live();
    return std::make_unique<File>(*this, FileOps::append(path));
  }
  void make_dir(const std::string& path) override { live(), FileOps::make_dir(path); }
  void rename(const std::string& from, const std::string& to) override { live(), FileOps::rename(from, to); }
  void remove_file(const std::string& path) override { live(), FileOps::remove_file(path); }
  void remove_dir(const std::string& path) override { live(), FileOps::remove_dir(path); }
  void sync_dir(const std::string&) override { live(); }

 protected:
  virtual void die() { throw Died(); }

 private:
  class File : public OutputFile {
   public:
    File(DyingFiles& process, std::unique_ptr<OutputFile> file) : process_(process), file_(std::move(file)) {}
    void write(const void* data, size_t num_bytes) override {
      if (process_.half_ && process_.calls_ + 1 == process_.at_)
        file_->write(data, num_bytes / 2), file_->close();
      process_.live();
      file_->write(data, num_bytes);
    }
    void sync() override { process_.live(); }  // memory outlives a process
    void close() override { process_.live(), file_->close(); }

   private:
    DyingFiles& process_;
    std::unique_ptr<OutputFile> file_;
  };

  void live() {
    if (++calls_ >= at_ && at_ > 0) die();
  }

  std::atomic<int> calls_ = 0;
  int at_;
  bool half_;
};

}  // namespace tycho
