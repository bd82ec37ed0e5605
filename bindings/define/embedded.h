// The Lua standard library as text inside the binary; cmake/EmbedText.cmake writes the source.
#pragma once
#include <string_view>
#include <vector>

namespace tycho {

/// Prefix of the names of Tycho's own chunks. User code never has such a name.
inline constexpr std::string_view kHostChunk = "=lua/tycho/";

struct EmbeddedModule {
  const char* name;       // name for require: "tycho.schema"
  const char* file;       // "lua/tycho/schema.lua"
  std::string_view text;  // static
};

const std::vector<EmbeddedModule>& embedded_modules();

}  // namespace tycho
