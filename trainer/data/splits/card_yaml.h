// The part of YAML in which data sets declare their configurations.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// A value of YAML. `line` counts from 1 in the text of the file.
struct CardNode {
  enum class Kind { kNull, kText, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;
  std::vector<CardNode> items;
  std::vector<std::pair<std::string, CardNode>> entries;
  int line = 0;

  /// Returns the value of a key; nullptr if this is no map with it.
  const CardNode* find(const std::string& key) const;
};

/// Reads the value of a key of the outermost map: maps and lists in blocks, plain and quoted text, and lists
/// in brackets; texts in blocks (| and >) are read as "". `first_line`: line of the file at which `yaml`
/// begins. Returns kNull for an absent key. Throws Error (kUnusable) with `place` and line for everything
/// else, such as anchors, tags and text over several lines: libyaml-cpp, which reads these, cannot be linked
/// into the engine.
CardNode read_card_key(const std::string& yaml, const std::string& key, const std::string& place,
                       int first_line);

}  // namespace tycho
