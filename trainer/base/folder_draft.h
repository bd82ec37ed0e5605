// A folder that appears whole or not at all.
#pragma once
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Returns true when a FolderDraft may take the path: nothing exists there, or only a folder that holds at
/// most the draft of a killed process.
bool is_free_for_draft(const std::string& path);

/// A hidden folder beside the target path. publish() renames it to the target. A process that is killed
/// before that leaves nothing at the path, and the next draft takes the hidden folder over. Owned by one
/// thread.
class FolderDraft {
 public:
  /// Requires is_free_for_draft(path). Throws Error (kFolderOwned) when another process is writing the same
  /// folder.
  FolderDraft(FileOps& files, const std::string& path);
  /// Removes the draft unless it has been published.
  ~FolderDraft();
  FolderDraft(const FolderDraft&) = delete;
  FolderDraft& operator=(const FolderDraft&) = delete;

  /// Path of the draft: write here.
  const std::string& dir() const { return dir_; }
  /// Gives the folder its final name, durably.
  void publish();

 private:
  FileOps& files_;
  std::string path_, dir_, at_;  // at_: current path of the draft
  bool published_ = false;
  bool inside_ = false;  // the draft is inside the target folder, which must stay
  int lock_ = -1;        // lock on the folder, held until destruction or the end of the process
};

}  // namespace tycho
