// Circles of folders and of files.
#include "tests/house/folder_circles.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

namespace tycho::house {
namespace {

namespace fs = std::filesystem;

/// A line of one file that needs another file.
struct Need {
  std::string from, to, line;
};

std::string folder_of(const std::string& file) { return fs::path(file).parent_path().string(); }

/// Returns the headers that define each class, struct or enum at the beginning of a line.
std::map<std::string, std::set<std::string>> definitions(const Sources& sources) {
  static const std::regex definition(R"(^(?:class|struct|enum class) (\w+)[^;]*\{)");
  std::map<std::string, std::set<std::string>> found;
  std::smatch match;
  for (const auto& [file, text] : sources) {
    if (!file.ends_with(".h")) continue;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (std::regex_search(line, match, definition)) found[match[1]].insert(file);
  }
  return found;
}

std::vector<Need> needs_of(const Sources& sources) {
  static const std::regex declaration(R"(^(?:class|struct|enum class) (\w+)(?: : \w+)?;)");
  const auto defined = definitions(sources);
  std::vector<Need> needs;
  std::smatch match;
  for (const auto& [file, text] : sources) {
    for (const Include& include : includes_of(text))
      if (sources.contains(include.target))
        needs.push_back({file, include.target, file + ":" + std::to_string(include.line)});
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (!std::regex_search(line, match, declaration)) continue;
      const auto headers = defined.find(match[1]);
      if (headers == defined.end()) continue;
      const bool own =
          std::any_of(headers->second.begin(), headers->second.end(),
                      [&](const std::string& header) { return folder_of(header) == folder_of(file); });
      if (own) continue;
      for (const std::string& header : headers->second)
        needs.push_back({file, header, file + ":" + std::to_string(number) + ", declares " + match[1].str()});
    }
  }
  return needs;
}

/// Returns the folder that a file counts for: the first one on its path that has files of its own, at most
/// `depth` names long.
std::string node_of(const std::string& file, size_t depth, const std::set<std::string>& with_files) {
  fs::path node;
  size_t names = 0;
  for (const fs::path& name : fs::path(folder_of(file))) {
    node /= name;
    if (++names == depth || with_files.contains(node.string())) break;
  }
  return node.string();
}

using Graph = std::map<std::string, std::map<std::string, std::string>>;  // from -> to -> line

std::set<std::string> reached_from(const Graph& graph, const std::string& start) {
  std::set<std::string> reached;
  std::vector<std::string> open = {start};
  while (!open.empty()) {
    const std::string node = open.back();
    open.pop_back();
    const auto edges = graph.find(node);
    if (edges == graph.end()) continue;
    for (const auto& [to, line] : edges->second)
      if (reached.insert(to).second) open.push_back(to);
  }
  return reached;
}

std::vector<FolderCircle> circles_of(const Graph& graph) {
  std::map<std::string, std::set<std::string>> reached;
  for (const auto& [node, edges] : graph) reached[node] = reached_from(graph, node);
  std::vector<FolderCircle> circles;
  std::set<std::string> seen;
  for (const auto& [node, others] : reached) {
    if (!others.contains(node) || seen.contains(node)) continue;
    FolderCircle circle;
    for (const std::string& other : others)
      if (reached[other].contains(node)) circle.folders.insert(other);
    for (const std::string& from : circle.folders)
      for (const auto& [to, line] : graph.at(from))
        if (circle.folders.contains(to)) circle.lines.push_back(line + " (" + from + " -> " + to + ")");
    seen.insert(circle.folders.begin(), circle.folders.end());
    circles.push_back(std::move(circle));
  }
  return circles;
}

}  // namespace

std::vector<FolderCircle> folder_circles(const Sources& sources) {
  const std::vector<Need> needs = needs_of(sources);
  std::set<std::string> with_files;
  size_t deepest = 0;
  for (const auto& [file, text] : sources) {
    with_files.insert(folder_of(file));
    deepest = std::max(deepest, static_cast<size_t>(std::count(file.begin(), file.end(), '/')));
  }
  std::vector<FolderCircle> all;
  for (size_t depth = 2; depth <= deepest; ++depth) {
    Graph graph;
    for (const Need& need : needs) {
      const std::string from = node_of(need.from, depth, with_files),
                        to = node_of(need.to, depth, with_files);
      if (from != to) graph[from].try_emplace(to, need.line);
    }
    for (FolderCircle& circle : circles_of(graph)) {
      const bool known = std::any_of(
          all.begin(), all.end(), [&](const FolderCircle& other) { return other.folders == circle.folders; });
      if (!known) all.push_back(std::move(circle));
    }
  }
  return all;
}

std::vector<FolderCircle> file_circles(const Sources& sources) {
  const auto node_of_file = [](const std::string& file) { return file.substr(0, file.rfind('.')); };
  Graph graph;
  for (const auto& [file, text] : sources)
    for (const Include& include : includes_of(text)) {
      const std::string from = node_of_file(file), to = node_of_file(include.target);
      if (from != to && sources.contains(include.target))
        graph[from].try_emplace(to, file + ":" + std::to_string(include.line));
    }
  return circles_of(graph);
}

}  // namespace tycho::house
