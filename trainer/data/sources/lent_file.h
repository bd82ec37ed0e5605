// Files that are brought to this machine while they are read.
#pragma once
#include <string>

#include "trainer/data/sources/input_files.h"

namespace tycho {

/// Brings files of another place to this machine.
class FileLender {
 public:
  virtual ~FileLender() = default;
  /// Returns the path on this machine of an input file, whose bytes are verified. Throws Error: kUnusable if
  /// the place refuses, kStorage if it cannot be reached after retries.
  virtual std::string lend(const std::string& path) = 0;
  /// Called when a file that was lent has been read.
  virtual void take_back(const std::string& path) = 0;
};

/// An input file while it is open: on this machine as long as this object lives.
class LentFile {
 public:
  explicit LentFile(const InputFile& file)
      : lender_(file.lender), name_(file.path), path_(lender_ ? lender_->lend(name_) : name_) {}
  ~LentFile() {
    if (lender_) lender_->take_back(name_);
  }
  LentFile(const LentFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::shared_ptr<FileLender> lender_;
  std::string name_, path_;
};

}  // namespace tycho
