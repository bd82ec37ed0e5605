// Files of recipe code, read with limits.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// The text of a file, or the reason why there is none. `absent`: the file does not exist, as opposed to one
/// that cannot be read.
struct SourceFile {
  std::optional<std::string> text;
  std::string message;
  bool absent = false;
};

/// A position in a file (columns in bytes), or an argument of the command line.
struct SourceLocation {
  int line = 0, col = 0;  // from 1; 0 when unknown
  int len = 1;            // bytes
  int argument = 0;       // position of the argument; 0: none
};

/// Reads at most 1 MiB: recipes are written by hand, so a longer file is data.
SourceFile read_source(const std::string& path);

/// Returns the paths of all Lua files below a folder, relative to the folder, sorted. Skips names that begin
/// with a dot. Throws Error (kRecipe) when there are more than 1,000, or the folder cannot be read.
std::vector<std::string> lua_files_below(const std::string& folder);

/// Returns "; did you mean ...?" with Lua files in the folder of `wanted`, or "".
std::string did_you_mean_file(const std::string& wanted);

/// Returns the position of the first byte that is not part of a UTF-8 character, or nullopt.
std::optional<size_t> find_utf8_error(std::string_view text);

}  // namespace tycho
