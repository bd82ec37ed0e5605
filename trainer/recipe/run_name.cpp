// Puts the name of a run into paths.
#include "trainer/recipe/run_name.h"

#include <string_view>

namespace tycho {

std::string with_run_name(std::string path, const std::string& run_name) {
  constexpr std::string_view kMark = kRunNameMark;
  for (size_t at = path.find(kMark); at != std::string::npos; at = path.find(kMark, at + run_name.size()))
    path.replace(at, kMark.size(), run_name);
  return path;
}

bool has_other_braces(const std::string& path) {
  return with_run_name(path, "").find_first_of("{}") != std::string::npos;
}

}  // namespace tycho
