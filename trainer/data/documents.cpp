// Sorts by path, because folders list their files in any order.
#include "trainer/data/documents.h"

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> list_folder(const std::string& folder, const std::vector<std::string>& extensions) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    const auto matches = [&](const std::string& extension) { return path.ends_with(extension); };
    if (it->is_regular_file(error) && std::any_of(extensions.begin(), extensions.end(), matches))
      found.push_back(path);
  }
  if (error) fail(ExitCode::kUnusable, "[data] cannot read folder {}: {}", folder, error.message());
  if (found.empty()) {
    fail(ExitCode::kUnusable,
         "[data] folder {} has no file that ends in {}; choose other extensions, or name the files", folder,
         fmt::join(extensions, " or "));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<std::string> list_documents(const std::vector<std::string>& inputs,
                                        const std::vector<std::string>& extensions) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (fs::is_directory(input, error)) {
      const auto found = list_folder(input, extensions);
      paths.insert(paths.end(), found.begin(), found.end());
    } else if (fs::exists(input, error)) {
      paths.push_back(input);
    } else {
      fail(ExitCode::kUnusable, "[data] there is no file or folder {}", input);
    }
  }
  return paths;
}

}  // namespace tycho
