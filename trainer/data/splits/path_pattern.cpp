// Rules of fsspec 2026.9 (glob_translate) and of datasets/data_files.py (resolve_pattern) 5.2.0.
#include "trainer/data/splits/path_pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr std::array<std::string_view, 6> kDescriptions = {"README.md",         "config.json",
                                                           "dataset_info.json", "dataset_infos.json",
                                                           "dummy_data.zip",    "dataset_dict.json"};

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    if (slash == path.npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

int count_hidden(const std::vector<std::string>& parts) {
  return static_cast<int>(std::count_if(parts.begin(), parts.end(), [](const std::string& part) {
    return part.starts_with('.') && part.find_first_not_of('.') != part.npos;
  }));
}

/// Counts folders, without the last name, that begin with __.
int count_special(const std::vector<std::string>& parts) {
  if (parts.empty()) return 0;
  return static_cast<int>(std::count_if(parts.begin(), parts.end() - 1,
                                        [](const std::string& part) { return part.starts_with("__"); }));
}

/// Returns the end of the set "[...]" at the beginning of `pattern`; npos if it is not closed.
size_t end_of_set(std::string_view pattern) {
  const size_t first = pattern.size() > 1 && pattern[1] == '!' ? 2 : 1;
  const size_t close = pattern.find(']', first + 1);  // a first ] is a member
  return close == pattern.npos ? close : close + 1;
}

bool is_in_set(std::string_view set, char c) {
  set = set.substr(1, set.size() - 2);
  const bool is_negated = set.starts_with('!');
  if (is_negated) set.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    found |= is_range ? set[i] <= c && c <= set[i + 2] : set[i] == c;
    if (is_range) i += 2;
  }
  return found != is_negated;
}

bool fits_name(std::string_view name, std::string_view pattern) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      for (size_t taken = 0; taken <= name.size(); ++taken)
        if (fits_name(name.substr(taken), pattern.substr(1))) return true;
      return false;
    }
    if (name.empty()) return false;
    const size_t set = pattern[0] == '[' ? end_of_set(pattern) : pattern.npos;
    if (set != pattern.npos ? !is_in_set(pattern.substr(0, set), name[0])
                            : pattern[0] != '?' && pattern[0] != name[0])
      return false;
    name.remove_prefix(1);
    if (pattern[0] == '?')  // the rest of the character
      while (!name.empty() && (static_cast<uint8_t>(name[0]) & 0xC0) == 0x80) name.remove_prefix(1);
    pattern.remove_prefix(set != pattern.npos ? set : 1);
  }
  return name.empty();
}

bool fits_parts(std::string_view path, const std::string* part, const std::string* end) {
  if (part == end) return false;
  if (part + 1 == end && *part == "**") return true;
  if (*part == "**") {
    while (true) {
      if (fits_parts(path, part + 1, end)) return true;
      const size_t slash = path.find('/');
      if (slash == path.npos) return false;
      path.remove_prefix(slash + 1);
    }
  }
  const size_t slash = path.find('/');
  if ((slash == path.npos) != (part + 1 == end)) return false;
  return fits_name(path.substr(0, slash), *part) &&
         (slash == path.npos || fits_parts(path.substr(slash + 1), part + 1, end));
}

}  // namespace

PathPattern::PathPattern(const std::string& pattern)
    : parts_(parts_of(pattern)), has_magic_(pattern.find_first_of("*?[") != pattern.npos) {
  for (const std::string& part : parts_)
    if (part != "**" && part.find("**") != part.npos)
      fail(ExitCode::kUnusable,
           "[data] the pattern {}: expected ** between slashes, got \"{}\"; write * for a part of a name",
           pattern, part);
  num_hidden_ = count_hidden(parts_);
  num_special_ = count_special(parts_);
}

bool PathPattern::fits(std::string_view path) const {
  return fits_parts(path, parts_.data(), parts_.data() + parts_.size());
}

bool PathPattern::matches(const std::string& path) const {
  if (!fits(path)) return false;
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (name != parts_.back() &&
      std::find(kDescriptions.begin(), kDescriptions.end(), name) != kDescriptions.end())
    return false;
  const std::vector<std::string> parts = parts_of(path);
  return count_hidden(parts) == num_hidden_ && count_special(parts) == num_special_;
}

}  // namespace tycho
