// Determines the split of each file of a folder by its name and its folders' names.
#pragma once
#include <string>
#include <vector>

namespace tycho {

struct FolderSplit {
  std::string name;                // "train", "validation", "test", or the name before "-00000-of-00001"
  std::vector<std::string> files;  // in the order in which they are read
};

/// Returns the splits of a folder with these files, whose paths are relative to it, have slashes and are
/// sorted, as the library `datasets` of Hugging Face finds them. Files in data/ that are called
/// NAME-00000-of-00001.* make the split NAME, and other files then belong to no split. Else words in the
/// names of folders decide, else those in the names of files: "train" or "training", "validation", "valid",
/// "dev" or "val", "test", "testing", "eval" or "evaluation", between the ends of a name, digits, spaces and
/// . - _. Empty if no name has such a word. Throws Error (kUnusable) for a NAME that no split can have.
std::vector<FolderSplit> folder_splits(const std::vector<std::string>& files);

/// Returns the files that match these patterns, pattern by pattern; each file once.
std::vector<std::string> matching_files(const std::vector<std::string>& files,
                                        const std::vector<std::string>& patterns);

/// True if a split can have this name: letters, digits and _, and dots between them.
bool can_name_split(const std::string& name);

/// Returns the split of this name, or the one that `name` is short for ("val"); nullptr if there is none.
const FolderSplit* find_split(const std::vector<FolderSplit>& splits, const std::string& name);

}  // namespace tycho
