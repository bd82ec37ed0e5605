// The boundary between C++ and Lua: who owns a Lua state, how errors and values are passed.
#pragma once
#include <exception>
#include <lua.hpp>
#include <memory>
#include <optional>
#include <string>

#include "bindings/define/watch.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"

namespace tycho {

/// A Lua state with base, table, string, math, bit, debug and package. The JIT is off, because compiled loops
/// could not be interrupted. Above `max_bytes` the watch checks at once whether they are in use
/// (LuaLimits::max_bytes); above twice as many, allocations fail with Lua's "not enough memory". Owned by one
/// thread.
class LuaState {
 public:
  explicit LuaState(int64_t max_bytes = kLuaBytes);
  lua_State* get() const { return state_.get(); }
  void set_max_bytes(int64_t bytes) { budget_->max = static_cast<size_t>(bytes); }
  /// Keeps an object alive until the state is closed, for finalisers that use it.
  void keep(std::shared_ptr<void> thing) { kept_ = std::move(thing); }

 private:
  struct Close {
    void operator()(lua_State* L) const { lua_close(L); }
  };
  struct Budget {
    size_t max = 0, used = 0;
    bool is_above = false;
  };
  static void* allocate(void* budget, void* block, size_t old_bytes, size_t new_bytes);
  std::unique_ptr<Budget> budget_;  // outlives the state
  std::shared_ptr<void> kept_;      // outlives the state too
  std::unique_ptr<lua_State, Close> state_;
};

/// An API error shown to the user: its code ("E_SHAPE") and a hint.
class ScriptError : public Error {
 public:
  ScriptError(const std::string& name, const std::string& message, const std::string& hint = "",
              ExitCode code = ExitCode::kUsage)
      : Error(message, code), name_(name), hint_(hint) {}
  const std::string& name() const { return name_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string name_, hint_;
};

/// The parts of an error object apart from its message; "" if absent.
struct ErrorDetail {
  std::string name;   // its code; "" for the default of the exit code
  std::string hint;   // what to do
  std::string cause;  // text of the error that caused it
};

/// Pushes an error object: a table with code ("E_RECIPE"), exit (number), message, where (file:line of the
/// nearest recipe frame, or nil), hint and cause (or nil) and a __tostring.
void push_error(lua_State* L, const std::string& message, ExitCode code, const ErrorDetail& detail = {});

/// Returns the exit code of an error object made by Tycho; nullopt for any other value, whatever fields it
/// has.
std::optional<ExitCode> exit_of(lua_State* L, int index);
/// Makes the table on top of the stack an error object with this exit code.
void set_exit(lua_State* L, ExitCode code);

/// Returns the type and text of an exception.
std::string cause_text(const std::exception& error);

/// Runs the body of a function that Lua calls. Catches an exception, leaves the C++ frames of `body`, and
/// then raises a Lua error object with its text and exit code. Lua errors pass through: a catch (...) would
/// swallow them. `body` returns the number of results that it pushed.
template <class Body>
int protect(lua_State* L, Body&& body) {
  try {
    return body();
  } catch (const ScriptError& error) {
    push_error(L, error.what(), error.code(), {error.name(), error.hint()});
  } catch (const Error& error) {
    push_error(L, error.what(), error.code());
  } catch (const std::exception& error) {
    push_error(L, error.what(), ExitCode::kFailure, {"", "", cause_text(error)});
  }
  return lua_error(L);
}

/// Calls the function below `num_args` arguments on the stack; the only way from C++ into Lua. Throws a Lua
/// error as an Error with the error object's exit code (kFailure for plain text), and with the Lua frames
/// when `trace` is true.
void call_lua(lua_State* L, int num_args, int num_results, bool trace = false);

/// Pushes a value; objects and arrays become tables, null becomes the light userdata NULL.
void push_json(lua_State* L, const Json& json);

/// Returns the value at a stack index. Tables with native.array's metatable, and tables of 1..n, are arrays.
/// Numbers without a fraction are integers. Throws Error (kRecipe) on functions and other values that are not
/// data.
Json read_json(lua_State* L, int index);

/// Marks the table on top of the stack as an array, even when it is empty.
void mark_array(lua_State* L);

/// Returns a string argument of a binding. Raises a Lua error that names the argument otherwise.
inline std::string string_argument(lua_State* L, int index) {
  size_t size = 0;
  const char* text = luaL_checklstring(L, index, &size);
  return {text, size};
}

}  // namespace tycho
