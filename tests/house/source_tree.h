// Reads the source tree for the house rules: which files there are, what they include, who owns them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tycho::house {

struct Include {
  std::string target;  // as written between the quotes or brackets
  int line = 0;
};

/// One line of build/*/layers.txt: a library, the libraries it may use, and its files as paths from the root.
struct Library {
  std::string name;
  std::vector<std::string> edges;  // names of libraries; "torch" for LibTorch
  std::vector<std::string> files;
};

using Sources = std::map<std::string, std::string>;  // path from the root -> text

/// Every file under `folders` of the source tree whose name ends in one of `endings`.
Sources read_sources(const std::vector<std::string>& folders, const std::vector<std::string>& endings);
std::string read_text(const std::string& path);
/// Code without comments, preprocessor lines and what literals hold.
std::string bare_code(const std::string& text);

std::vector<Include> includes_of(const std::string& text);
std::vector<Library> parse_layers(const std::string& text);

/// What `library` reaches over its edges, itself included.
std::set<std::string> reach(const std::vector<Library>& libraries, const std::string& library);

/// The library that lists `file`; for an unlisted one, the only library with files in its folder or the
/// nearest one above. Empty when there is none.
std::string owner_of(const std::vector<Library>& libraries, const std::string& file);

/// "file:line: what is wrong" for every include that the edges do not allow.
std::vector<std::string> layering_violations(const std::vector<Library>& libraries, const Sources& sources);

}  // namespace tycho::house
