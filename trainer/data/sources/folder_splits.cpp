// The rules are those of datasets/data_files.py (5.2.0), which expresses them as patterns.
#include "trainer/data/sources/folder_splits.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tycho {
namespace {

constexpr std::string_view kBetweenWords = "-._ 0123456789";

struct SplitWords {
  std::string_view split;
  std::array<std::string_view, 4> words;
};
constexpr std::array<SplitWords, 3> kSplits = {{{"train", {"train", "training"}},
                                                {"validation", {"validation", "valid", "dev", "val"}},
                                                {"test", {"test", "testing", "eval", "evaluation"}}}};

bool is_between_words(char c) { return kBetweenWords.find(c) != std::string_view::npos; }

/// True if a name contains the word. `at_end`: also if the name ends with it.
bool has_word(std::string_view name, std::string_view word, bool at_end) {
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || is_between_words(name[at - 1]);
    const bool ends = end == name.size() ? at_end : is_between_words(name[end]);
    if (begins && ends) return true;
  }
  return false;
}

bool names_split(std::string_view name, const SplitWords& split, bool at_end) {
  return std::any_of(split.words.begin(), split.words.end(),
                     [&](std::string_view word) { return !word.empty() && has_word(name, word, at_end); });
}

bool is_in_folder_of(std::string_view path, const SplitWords& split) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    if (names_split(path.substr(0, slash), split, true)) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

bool is_called(std::string_view path, const SplitWords& split) {
  return names_split(path.substr(path.rfind('/') + 1), split, false);
}

/// Returns NAME of data/NAME-00000-of-00001.ending; "" for other paths.
std::string_view sharded_split(std::string_view path) {
  constexpr std::string_view kFolder = "data/", kForm = "-ddddd-of-ddddd";
  if (!path.starts_with(kFolder) || path.find('/', kFolder.size()) != std::string_view::npos) return "";
  const std::string_view name = path.substr(kFolder.size());
  for (size_t at = name.rfind("-of-"); at != std::string_view::npos && at > 6;
       at = name.rfind("-of-", at - 1)) {
    const size_t begin = at - 6;
    const std::string_view numbers = name.substr(begin, kForm.size());
    const bool fits =
        std::equal(numbers.begin(), numbers.end(), kForm.begin(), kForm.end(),
                   [](char c, char form) { return form == 'd' ? c >= '0' && c <= '9' : c == form; });
    if (fits && name.find('.', begin + kForm.size()) != std::string_view::npos) return name.substr(0, begin);
  }
  return "";
}

void add_to(std::vector<FolderSplit>& splits, std::string_view name, const std::string& file) {
  auto found =
      std::find_if(splits.begin(), splits.end(), [&](const auto& split) { return split.name == name; });
  if (found == splits.end()) found = splits.insert(found, {std::string(name), {}});
  found->files.push_back(file);
}

}  // namespace

std::vector<FolderSplit> folder_splits(const std::vector<std::string>& files) {
  std::vector<FolderSplit> splits;
  for (const std::string& file : files)
    if (const std::string_view name = sharded_split(file); !name.empty()) add_to(splits, name, file);
  for (const auto& belongs : {is_in_folder_of, is_called}) {
    if (!splits.empty()) break;
    for (const SplitWords& split : kSplits)
      for (const std::string& file : files)
        if (belongs(file, split)) add_to(splits, split.split, file);
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
