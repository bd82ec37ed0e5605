// Circles of folders and of files: which reach each other over includes, folders over forward declarations
// too.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace tycho::house {

/// Folders, or files, that all reach each other, and the lines that make their edges.
struct FolderCircle {
  std::set<std::string> folders;
  std::vector<std::string> lines;  // "trainer/a/x.h:2 (trainer/a -> trainer/b)", one for each edge
};

/// Returns the circles of folders at every depth of the path. A folder below one with files of its own counts
/// as part of it. A forward declaration of a class that only another folder defines is an edge, as an include
/// is.
std::vector<FolderCircle> folder_circles(const Sources& sources);

/// Returns the circles of files by includes; a header and its source are one, named without the ending.
std::vector<FolderCircle> file_circles(const Sources& sources);

}  // namespace tycho::house
