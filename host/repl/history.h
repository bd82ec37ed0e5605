// The history of the prompt: one file for all projects, each entry with its folder.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Keeps one line of JSON per entry: text, time, folder, seconds. When the file cannot be written, nothing is
/// kept.
class ReplHistory {
 public:
  /// `path` is "" to keep nothing. Skips lines that do not parse.
  explicit ReplHistory(std::string path);

  /// Returns the entries of earlier sessions, newest last: first those of other folders, then those of this
  /// one.
  std::vector<std::string> earlier() const;
  void add(const std::string& text, double seconds);
  /// Returns the entries of this folder, then of this session, that contain `part`, one per line.
  std::string matching(const std::string& part) const;

 private:
  struct Entry {
    std::string text, folder;
  };
  std::string path_, folder_;
  std::vector<Entry> entries_;
};

/// Returns $XDG_STATE_HOME/tycho/history.jsonl, or ~/.local/state/tycho/history.jsonl; "" without a home
/// folder.
std::string history_path();

}  // namespace tycho
