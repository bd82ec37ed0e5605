// The rules and their patterns are those of datasets/data_files.py (5.2.0).
#include "trainer/data/splits/folder_splits.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/data/splits/path_pattern.h"

namespace tycho {
namespace {

constexpr const char* kShards = "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*";
constexpr size_t kShardsLength = sizeof("-00000-of-00000") - 1;
constexpr const char* kBetween = "[-._ 0-9]";

struct SplitWords {
  std::string_view split;
  std::array<std::string_view, 4> words;
};
constexpr std::array<SplitWords, 3> kSplits = {{{"train", {"train", "training"}},
                                                {"validation", {"validation", "valid", "dev", "val"}},
                                                {"test", {"test", "testing", "eval", "evaluation"}}}};

/// Returns the patterns of a split whose words are in names of folders, or of files.
std::vector<std::string> patterns_of(const SplitWords& split, bool in_folders) {
  std::vector<std::string> patterns;
  for (const std::string_view word : split.words) {
    if (word.empty()) continue;
    if (in_folders) {
      for (const char* form : {"**/{0}/**", "**/{0}{1}*/**", "**/*{1}{0}/**", "**/*{1}{0}{1}*/**"})
        patterns.push_back(fmt::format(fmt::runtime(form), word, kBetween));
    } else {
      for (const char* form : {"**/{0}{1}*", "**/*{1}{0}{1}*"})
        patterns.push_back(fmt::format(fmt::runtime(form), word, kBetween));
    }
  }
  return patterns;
}

/// Returns NAME of data/NAME-00000-of-00001.ending, which fits the pattern of shards.
std::string sharded_name(std::string name) {
  name.erase(0, name.rfind('/') + 1);
  const auto fits = [&](size_t at) { return PathPattern(kShards).matches(name.substr(at)); };
  for (size_t at = name.size() - std::min(name.size(), kShardsLength) + 1; at-- > 0;)
    if (name[at] == '-' && fits(at)) return name.substr(0, at);
  return name;
}

/// Returns the splits of data/NAME-00000-of-00001.*: train, validation, test, then others by name.
std::vector<FolderSplit> sharded_splits(const std::vector<std::string>& files) {
  std::set<std::string> names;
  for (const std::string& file : matching_files(files, {std::string("data/*") + kShards}))
    names.insert(sharded_name(file));
  std::vector<std::string> ordered;
  for (const SplitWords& split : kSplits)
    if (names.erase(std::string(split.split)) > 0) ordered.emplace_back(split.split);
  ordered.insert(ordered.end(), names.begin(), names.end());
  std::vector<FolderSplit> splits;
  for (const std::string& name : ordered) {
    if (!can_name_split(name))
      fail(ExitCode::kUnusable,
           "[data] data/{}-00000-of-00001.*: expected a split's name of letters, digits and _, got \"{}\"; "
           "name the files themselves",
           name, name);
    splits.push_back({name, matching_files(files, {"data/" + name + kShards})});
  }
  return splits;
}

}  // namespace

bool can_name_split(const std::string& name) {
  bool ended = true;  // a dot, or the beginning: a letter must follow
  for (const char c : name) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0;
    if (!is_word && (c != '.' || ended)) return false;
    ended = !is_word;
  }
  return !ended;
}

std::vector<std::string> matching_files(const std::vector<std::string>& files,
                                        const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  std::vector<bool> is_taken(files.size());
  for (const std::string& text : patterns) {
    const PathPattern pattern(text);
    for (size_t i = 0; i < files.size(); ++i) {
      if (is_taken[i] || !pattern.matches(files[i])) continue;
      is_taken[i] = true;
      found.push_back(files[i]);
    }
  }
  return found;
}

std::vector<FolderSplit> folder_splits(const std::vector<std::string>& files) {
  std::vector<FolderSplit> splits = sharded_splits(files);
  for (const bool in_folders : {true, false}) {
    if (!splits.empty()) break;
    for (const SplitWords& split : kSplits)
      if (auto found = matching_files(files, patterns_of(split, in_folders)); !found.empty())
        splits.push_back({std::string(split.split), std::move(found)});
  }
  return splits;
}

const FolderSplit* find_split(const std::vector<FolderSplit>& splits, const std::string& name) {
  const auto called = [&](std::string_view wanted) {
    const auto found =
        std::find_if(splits.begin(), splits.end(), [&](const auto& split) { return split.name == wanted; });
    return found == splits.end() ? nullptr : &*found;
  };
  if (const FolderSplit* split = called(name)) return split;
  for (const SplitWords& split : kSplits)
    if (std::find(split.words.begin(), split.words.end(), name) != split.words.end() && !name.empty())
      return called(split.split);
  return nullptr;
}

}  // namespace tycho
