// A Lua function that turns lines of any shape into rows of finetuning data: LLM Foundry's preprocessing_fn.
#pragma once
#include <string>
#include <vector>

#include "bindings/define/lua_util.h"
#include "trainer/base/json.h"

namespace tycho {

/// Owned by one thread. A call that does not end is stopped after ten seconds of its own time, and by Ctrl-C.
class RowFunction {
 public:
  /// The function that the Lua file returns; the file may `require "tycho"` and modules beside it. Throws
  /// Error (kUsage, or that of a Lua error) when there is none.
  explicit RowFunction(const std::string& file);

  /// The rows that it makes from one, none for nil and false. Throws Error (kUnusable) that begins with
  /// `place` when it fails, or returns something else than a row or a list of rows.
  std::vector<Json> operator()(const Json& row, const std::string& place);

 private:
  std::string file_;
  LuaState state_;
  int function_ = LUA_NOREF;
};

}  // namespace tycho
