// Fuzz targets: recipes, what is imported as one, and Lua.
#include <string>

#include "bindings/define/lua_util.h"
#include "bindings/define/native.h"
#include "bindings/define/recipe.h"
#include "bindings/define/watch.h"
#include "bindings/import/document.h"
#include "bindings/import/import.h"
#include "tests/fuzz/targets.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

void import_yaml(std::string_view bytes) {
  refused_or_taken([&] { import_recipe("fuzz.yaml", std::string(bytes)); });
}

void import_toml(std::string_view bytes) {
  refused_or_taken([&] { import_recipe("fuzz.toml", std::string(bytes)); });
}

constexpr const char* kRecipe =
    "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\nr.max_duration = \"10ba\"\n"
    "r.model = t.model.llama { width = 64, heads = 4, layers = 2, ffn_width = 128 }\n"
    "r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.train_data = t.data.mds { local_dir = \"data\" }\nreturn "
    "r\n";

/// A Lua state for many inputs: making one takes far longer than running most of them.
struct ReusedState {
  std::shared_ptr<LuaState> state;
  int left = 0;  // inputs until it is made anew

  template <class Make>
  const std::shared_ptr<LuaState>& get(const Make& make) {
    if (left-- == 0) {
      left = 1000;
      state = make();
    }
    return state;
  }
};

const std::shared_ptr<LuaState>& recipe_state() {
  static ReusedState reused;
  return reused.get([] { return std::make_shared<LuaState>(); });
}

// Many inputs loop forever, and at a recipe's own limit each of them would take seconds. The first input of a
// state loads the library, too.
constexpr LuaLimits kRecipeLimits = {.max_instructions = 3'000'000};

/// One argument on a recipe that is right; @ would read files.
void overrides(std::string_view bytes) {
  if (bytes.starts_with('@')) return;
  refused_or_taken([&] {
    RecipeRequest request{.file = "x.lua",
                          .pins = {{1, std::string(bytes)}},
                          .files = {{"x.lua", kRecipe}},
                          .only_files = true,
                          .quiet = true};
    try_recipe(request, recipe_state(), kRecipeLimits);
  });
}

/// A recipe's own text: the lexer looks at it for every message.
void recipe(std::string_view bytes) {
  refused_or_taken([&] {
    RecipeRequest request{
        .file = "x.lua", .files = {{"x.lua", std::string(bytes)}}, .only_files = true, .quiet = true};
    try_recipe(request, recipe_state(), kRecipeLimits);
  });
}

/// Calls the function that `code` returns with the bytes, in a state with the library.
void call_with(ReusedState& reused, const char* code, std::string_view bytes, const LuaLimits& limits) {
  lua_State* L = reused
                     .get([&] {
                       auto made = std::make_shared<LuaState>(limits.max_bytes);
                       open_library(made->get());
                       luaL_loadstring(made->get(), code);
                       call_lua(made->get(), 0, 1);
                       return made;
                     })
                     ->get();
  const LuaWatch watch(L, limits);
  lua_settop(L, 1);
  lua_pushvalue(L, 1);
  lua_pushlstring(L, bytes.data(), bytes.size());
  refused_or_taken([&] { call_lua(L, 1, 0); });
}

/// Any Lua in the world of recipes, without the checks of a recipe.
void sandbox(std::string_view bytes) {
  static ReusedState reused;
  call_with(reused,
            "local sandbox = require 'tycho.sandbox'\n"
            "local function refuse(_, message) error(message, 0) end\n"
            "return function(text)\n"
            "  local fn = load(text, '@fuzz.lua', 't')\n"
            "  return fn and setfenv(fn, sandbox.environment(type, type, refuse))()\nend",
            bytes, {.max_instructions = 20'000, .max_bytes = 16 << 20});
}

void lexer(std::string_view bytes) {
  static ReusedState reused;
  call_with(reused, "return require('tycho.lexer').index", bytes, {.max_bytes = 256 << 20});
}

void toml(std::string_view bytes) {
  refused_or_taken([&] { read_toml(std::string(bytes), "fuzz"); });
}

}  // namespace

std::vector<FuzzTarget> recipe_fuzz_targets() {
  return {{"import_yaml", import_yaml, 2048},
          {"import_toml", import_toml},
          {"overrides", overrides, 128},
          {"recipe", recipe},
          {"sandbox", sandbox, 512},
          {"lexer", lexer},
          {"toml", toml, 512}};
}

}  // namespace tycho
