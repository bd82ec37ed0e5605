// The Lua standard library as text inside the binary; cmake/EmbedLua.cmake writes the source.
#pragma once
#include <string_view>
#include <vector>

namespace tycho {

struct EmbeddedModule {
  const char* name;       // as require asks for it: "tycho.schema"
  const char* file;       // "lua/tycho/schema.lua"
  std::string_view text;  // static
};

const std::vector<EmbeddedModule>& embedded_modules();

}  // namespace tycho
