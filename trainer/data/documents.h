// Finds the files that the user names, and those in folders that the user names.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// The files that `inputs` name: files as they are, folders searched for names that end in one of
/// `extensions` and sorted by path. Throws Error (kUnusable) for an input that is not there and for a folder
/// without such files.
std::vector<std::string> list_documents(const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& extensions);

}  // namespace tycho
