// The files of a run folder for as long as this process owns it. Torch-free.
#pragma once
#include "trainer/base/file_ops.h"
#include "trainer/lock/run_lock.h"

namespace tycho {

/// Checks the lock before it passes a call on. A process that was stopped, lost its folder to a successor and
/// is woken writes nothing: every call throws Error (kFolderOwned). Both references outlive it and its files.
class OwnedFiles final : public FileOps {
 public:
  OwnedFiles(FileOps& files, const RunLock& lock) : files_(files), lock_(lock) {}

  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override;
  std::unique_ptr<OutputFile> append(const std::string& path) override;
  void make_dir(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool link(const std::string& from, const std::string& to) override;
  void remove_file(const std::string& path) override;
  void remove_dir(const std::string& path) override;
  void sync_dir(const std::string& path) override;

 private:
  FileOps& files_;
  const RunLock& lock_;
};

}  // namespace tycho
