// A Lua function that turns lines of any shape into rows of finetuning data: LLM Foundry's preprocessing_fn.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/lua_util.h"
#include "bindings/define/recipe.h"
#include "trainer/base/json.h"

namespace tycho {

/// A function of a user's Lua file. Owned by one thread. A call is stopped after ten seconds of thread time,
/// and by Ctrl-C.
class RowFunction {
 public:
  /// Loads the function that the Lua file returns, or the component (t.component), which has these fields;
  /// the file may `require` modules in its folder. Throws Error (kUsage, that of a Lua error, or kRecipe with
  /// a report) when there is none.
  explicit RowFunction(const std::string& file, const std::vector<PinArgument>& fields = {});

  /// Returns the rows that the function makes from one row; none for nil and false. Throws Error (kUnusable)
  /// that begins with `place` when the function fails, or returns anything but a row or a list of rows.
  std::vector<Json> operator()(const Json& row, const std::string& place);

 private:
  std::string file_;
  LuaState state_;
  int function_ = LUA_NOREF;
};

}  // namespace tycho
