// Reads the source tree for the house rules.
#include "tests/house/source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace tycho::house {
namespace {

namespace fs = std::filesystem;

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

bool matches(const std::string& include, const std::vector<std::string>& starts) {
  for (const std::string& start : starts) {
    if (starts_with(include, start)) return true;
  }
  return false;
}

/// Third-party headers that only some folders may see.
struct Reserved {
  std::vector<std::string> headers, folders;
  const char* rule;
};
const std::vector<Reserved> kReserved = {
    {{"lua.h", "lualib.h", "lauxlib.h", "luajit"},
     {"host/", "bindings/"},
     "Lua is for host and bindings only"},
    {{"cuda", "cub", "thrust/", "nv", "mma.h", "c10/cuda/", "ATen/cuda/"},
     {"trainer/kernels/cuda/"},
     "CUDA headers are for trainer/kernels/cuda only"},
    {{"nccl.h"}, {"trainer/cuda_plugin/entry/"}, "nccl.h is for trainer/cuda_plugin/entry only"},
    {{"torch/torch.h"}, {"tests/"}, "torch/torch.h is for the oracle in tests only"},
};
const std::vector<std::string> kTorch = {"ATen/", "c10/", "torch/"};

int rank_of_folder(const std::string& file) {
  if (starts_with(file, "trainer/")) return 0;
  if (starts_with(file, "bindings/")) return 1;
  return 2;
}

/// End of the literal that begins at `at`.
size_t end_of_literal(const std::string& text, size_t at) {
  if (text[at] == '"' && at > 0 && text[at - 1] == 'R') {
    const size_t open = text.find('(', at);
    const std::string close = ")" + text.substr(at + 1, open - at - 1) + "\"";
    return text.find(close, open) + close.size();
  }
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Sources read_sources(const std::vector<std::string>& folders, const std::vector<std::string>& endings) {
  Sources sources;
  const fs::path root = TYCHO_SOURCE_DIR;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).string();
      for (const std::string& ending : endings) {
        if (entry.is_regular_file() && ends_with(path, ending))
          sources[path] = read_text(entry.path().string());
      }
    }
  }
  return sources;
}

std::string bare_code(const std::string& text) {
  std::string code;
  bool line_begins = true;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const bool is_separator =
        c == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])) != 0;
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.compare(at, 2, "/*") == 0) {
      at = text.find("*/", at) + 2;
    } else if (c == '#' && line_begins) {
      do at = std::min(text.find('\n', at + 1), text.size());
      while (at < text.size() && text[at - 1] == '\\');
    } else if (c == '"' || (c == '\'' && !is_separator)) {
      at = end_of_literal(text, at);
      code += "\"\"";
      line_begins = false;
    } else {
      line_begins = c == '\n' || (line_begins && std::isspace(static_cast<unsigned char>(c)) != 0);
      code += c;
      ++at;
    }
  }
  return code;
}

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> includes;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("\"<", word);
    const size_t close = open == std::string::npos ? open : line.find_first_of("\">", open + 1);
    if (close != std::string::npos) includes.push_back({line.substr(open + 1, close - open - 1), number});
  }
  return includes;
}

std::vector<Library> parse_layers(const std::string& text) {
  std::vector<Library> libraries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(" : "), second = line.find(" : ", first + 2);
    if (first == std::string::npos || second == std::string::npos) continue;
    const size_t space = line.find(' ');
    const std::string folder = line.substr(space + 1, first - space - 1);
    Library library{line.substr(0, space), split(line.substr(first + 3, second - first - 3), ';'), {}};
    for (const std::string& group : split(line.substr(second + 3), ' ')) {
      for (const std::string& file : split(group, ';')) library.files.push_back(folder + "/" + file);
    }
    libraries.push_back(library);
  }
  return libraries;
}

std::set<std::string> reach(const std::vector<Library>& libraries, const std::string& library) {
  std::set<std::string> reached;
  std::vector<std::string> open = {library};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!reached.insert(name).second) continue;
    for (const Library& candidate : libraries) {
      if (candidate.name == name) open.insert(open.end(), candidate.edges.begin(), candidate.edges.end());
    }
  }
  return reached;
}

std::string owner_of(const std::vector<Library>& libraries, const std::string& file) {
  for (const Library& library : libraries) {
    for (const std::string& owned : library.files) {
      if (owned == file) return library.name;
    }
  }
  for (fs::path folder = fs::path(file).parent_path(); !folder.empty(); folder = folder.parent_path()) {
    std::set<std::string> owners;
    for (const Library& library : libraries) {
      for (const std::string& owned : library.files) {
        if (fs::path(owned).parent_path() == folder) owners.insert(library.name);
      }
    }
    if (owners.size() == 1) return *owners.begin();
    if (!owners.empty()) return "";
  }
  return "";
}

std::vector<std::string> layering_violations(const std::vector<Library>& libraries, const Sources& sources) {
  std::map<std::string, std::set<std::string>> reached;
  for (const Library& library : libraries) reached[library.name] = reach(libraries, library.name);
  std::vector<std::string> violations;
  for (const Library& library : libraries) {
    const bool torch = std::set<std::string>(library.edges.begin(), library.edges.end()).count("torch") > 0;
    if (!torch && reached[library.name].count("torch") > 0) {
      violations.push_back(library.name + ": a torch-free library depends on one that uses LibTorch");
    }
  }
  for (const auto& [file, text] : sources) {
    const std::string owner = owner_of(libraries, file);
    for (const Include& include : includes_of(text)) {
      const auto report = [&, file = file](const std::string& why) {
        violations.push_back(file + ":" + std::to_string(include.line) + ": includes " + include.target +
                             ": " + why);
      };
      for (const Reserved& reserved : kReserved) {
        if (matches(include.target, reserved.headers) && !matches(file, reserved.folders))
          report(reserved.rule);
      }
      if (matches(include.target, kTorch) && (owner.empty() || reached[owner].count("torch") == 0)) {
        report(owner.empty() ? "no library that uses LibTorch owns this file" : owner + " is torch-free");
      }
      if (!matches(include.target, {"trainer/", "bindings/", "host/"})) continue;
      if (rank_of_folder(include.target) > rank_of_folder(file))
        report("includes run host -> bindings -> trainer");
      const std::string target = owner_of(libraries, include.target);
      if (owner.empty() || target.empty() || reached[owner].count(target) > 0) continue;
      report(owner + " has no edge to " + target);
    }
  }
  return violations;
}

}  // namespace tycho::house
