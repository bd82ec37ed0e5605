// Lua objects backed by C++: handles, how long they are valid, and the memory they own.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/run/class.h"
#include "trainer/base/duration.h"
#include "trainer/base/json.h"

namespace tycho {

struct Handle;

/// Memory outside Lua that the handles of one `owner` keep alive together.
struct OwnedMemory {
  int64_t bytes = 0;
  const void* owner = nullptr;
};

/// A period in which handles are valid: an open session, or one call of a callback. Their targets stay alive
/// until it ends.
class Scope {
 public:
  /// `name` is used in messages: "the session", "batch_end of \"spike\"". `may_act` allows methods that
  /// change the run.
  Scope(std::string name, bool may_act) : name_(std::move(name)), may_act_(may_act) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  const std::string& name() const { return name_; }
  bool may_act() const { return may_act_; }
  bool open() const { return open_; }
  /// Makes every handle of this scope E_EXPIRED and frees what only they held.
  void close();

 private:
  friend class Objects;
  std::string name_;
  bool may_act_;
  bool open_ = true;
  Handle* first_ = nullptr;  // head of the list of its handles
};

/// The objects of one Lua state, used on its thread. Must outlive the state, whose finalisers use it.
class Objects {
 public:
  Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  /// Attaches to a state. Call once, before anything is pushed.
  void attach(lua_State* L);
  static Objects& of(lua_State* L);

  /// Pushes a handle that is valid while `scope` is open. `memory` is freed with the last handle of its
  /// owner; above the limit, Lua first collects its garbage. Throws ScriptError (E_MEMORY) when the maximum
  /// is in use.
  void push(lua_State* L, const Class& object, std::shared_ptr<void> target, std::shared_ptr<Scope> scope,
            const OwnedMemory& memory = {});
  /// Returns the scope of objects that only Lua owns.
  const std::shared_ptr<Scope>& own() const { return own_; }

  /// Returns the class of the value at an index, or null if it is not one of our objects.
  static const Class* class_of(lua_State* L, int index);
  /// Returns the C++ object of the handle at an index. Throws ScriptError: E_EXPIRED when its scope is
  /// closed.
  static std::shared_ptr<void> target_of(lua_State* L, const Class& object, int index);

  /// Frees objects that Lua has dropped. Called at step boundaries and never in a finaliser, which must not
  /// wait for a device.
  void drain();
  /// Runs a full garbage collection, then drain.
  void collect(lua_State* L);
  int64_t external_bytes() const { return external_bytes_; }
  int64_t live_handles() const { return live_handles_; }
  void set_limit(int64_t bytes) { limit_bytes_ = bytes; }
  /// Sets the maximum for the memory of handles and Lua together; `hint` ends the error message.
  void set_most(int64_t bytes, std::string hint) {
    most_bytes_ = bytes;
    most_hint_ = std::move(hint);
  }

 private:
  friend class Call;
  friend class Scope;
  static int finalise(lua_State* L);
  static int index(lua_State* L);
  static int refuse_write(lua_State* L);
  static int call_method(lua_State* L);
  static int call_hook(lua_State* L);
  static int call_operator(lua_State* L);
  static int tell_class(lua_State* L);
  static Handle& handle_at(lua_State* L, const Class& object, const char* what, int index = 1);
  void push_metatable(lua_State* L, const Class& object);
  void make_room(lua_State* L, int64_t bytes);
  /// Count a handle that was added or removed.
  void hold(const OwnedMemory& memory);
  void release(OwnedMemory& memory);

  struct OwnerMemory {
    int64_t bytes = 0, num_handles = 0;
  };

  std::shared_ptr<Scope> own_;
  std::unordered_map<const void*, OwnerMemory> held_;  // by owner
  std::vector<std::shared_ptr<void>> dropped_;
  int64_t external_bytes_ = 0, live_handles_ = 0;
  int64_t limit_bytes_ = int64_t{64} << 20;
  int64_t most_bytes_ = 0;  // 0: no limit
  std::string most_hint_;
};

/// One call of a body: its object, its checked arguments, and functions that push results. Arguments count
/// from 1.
class Call {
 public:
  lua_State* const L;
  Objects& objects;
  const std::shared_ptr<Scope>& scope;  // scope of the object

  Call(lua_State* state, Objects& all, const std::shared_ptr<Scope>& its_scope, void* target)
      : L(state), objects(all), scope(its_scope), target_(target) {}

  template <class T>
  T& self() const {
    return *static_cast<T*>(target_);
  }
  bool has(int arg) const { return !lua_isnoneornil(L, arg + 1); }
  int64_t integer(int arg, int64_t otherwise = 0) const {
    return has(arg) ? static_cast<int64_t>(lua_tonumber(L, arg + 1)) : otherwise;
  }
  double number(int arg, double otherwise = 0) const {
    return has(arg) ? lua_tonumber(L, arg + 1) : otherwise;
  }
  std::string text(int arg, const std::string& otherwise = "") const;
  Duration duration(int arg) const;
  /// Returns the ids of a kTokens argument that is a list; nullopt when it is text.
  std::optional<std::vector<int32_t>> tokens(int arg) const;
  /// Returns a kOptions or kAny argument as data.
  Json data(int arg) const { return has(arg) ? read_json(L, arg + 1) : Json(); }

  int push(double number) { return lua_pushnumber(L, number), 1; }
  int push(int64_t number) { return push(static_cast<double>(number)); }
  int push(bool value) { return lua_pushboolean(L, value ? 1 : 0), 1; }
  int push(const std::string& text) { return lua_pushlstring(L, text.data(), text.size()), 1; }
  int push(const char* text) { return lua_pushstring(L, text), 1; }
  int push(const Json& data) { return push_json(L, data), 1; }
  int push_nil() { return lua_pushnil(L), 1; }
  template <class T>
  int push(const std::optional<T>& value) {
    return value ? push(*value) : push_nil();
  }
  /// Pushes an object of the same scope.
  int push_object(const Class& object, std::shared_ptr<void> target) {
    return objects.push(L, object, std::move(target), scope), 1;
  }
  /// Pushes an object that Lua owns.
  int push_own(const Class& object, std::shared_ptr<void> target, const OwnedMemory& memory = {}) {
    return objects.push(L, object, std::move(target), objects.own(), memory), 1;
  }

 private:
  void* target_;
};

}  // namespace tycho
