// A folder that appears whole or not at all.
#pragma once
#include <string>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Whether a FolderDraft may take the path: nothing is there, or a folder that holds at most what a killed
/// one left.
bool is_free_for_draft(const std::string& path);

/// A hidden folder beside the one that is wanted, which takes its name at the end: whoever is killed on the
/// way leaves nothing of that name, and whoever starts again takes the hidden folder over. Owned by one
/// thread.
class FolderDraft {
 public:
  /// `path`: as is_free_for_draft wants it. Throws Error (kFolderOwned) when another process writes
  /// the same folder now.
  FolderDraft(FileOps& files, const std::string& path);
  /// Removes what was written unless it has been published.
  ~FolderDraft();
  FolderDraft(const FolderDraft&) = delete;
  FolderDraft& operator=(const FolderDraft&) = delete;

  /// Where to write meanwhile.
  const std::string& dir() const { return dir_; }
  /// Gives the folder its name, durably.
  void publish();

 private:
  FileOps& files_;
  std::string path_, dir_, at_;  // at_: where it is now
  bool published_ = false;
  bool inside_ = false;  // the draft lies in the folder itself, which must stay
  int lock_ = -1;        // of the folder: held as long as this lives, and gone with the process
};

}  // namespace tycho
