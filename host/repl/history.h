// The history of the prompt: one file for all projects, each entry with its folder.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// One line of JSON per entry: text, time, folder, seconds. A file that cannot be written only means that
/// nothing is kept.
class ReplHistory {
 public:
  /// `path`: "" keeps nothing. Lines that do not parse are skipped.
  explicit ReplHistory(std::string path);

  /// Entries of earlier sessions, newest last: those of other folders, then those of this one.
  std::vector<std::string> earlier() const;
  void add(const std::string& text, double seconds);
  /// Entries of this folder, then of this session, that hold `part`, one below the other.
  std::string matching(const std::string& part) const;

 private:
  struct Entry {
    std::string text, folder;
  };
  std::string path_, folder_;
  std::vector<Entry> entries_;
};

/// $XDG_STATE_HOME/tycho/history.jsonl, or ~/.local/state/tycho/history.jsonl; "" without a home.
std::string history_path();

}  // namespace tycho
