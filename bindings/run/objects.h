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

/// Memory outside Lua that handles of one `owner` keep alive together.
struct OwnedMemory {
  int64_t bytes = 0;
  const void* owner = nullptr;
};

/// A period in which handles are valid: an open session, or one call of a callback. What they refer to stays
/// alive until it ends.
class Scope {
 public:
  /// `name`: for messages: "the session", "batch_end of \"spike\"". `may_act`: methods that change the run
  /// may be called.
  Scope(std::string name, bool may_act) : name_(std::move(name)), may_act_(may_act) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  const std::string& name() const { return name_; }
  bool may_act() const { return may_act_; }
  bool open() const { return open_; }
  /// From now on every handle of this scope is E_EXPIRED; what only they held is freed.
  void close();

 private:
  friend class Objects;
  std::string name_;
  bool may_act_;
  bool open_ = true;
  Handle* first_ = nullptr;  // of a list of all its handles
};

/// The objects of one Lua state, on its thread. Lives longer than the state: finalisers come back to it.
class Objects {
 public:
  Objects();
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  /// Makes this the objects of a state. Once, before anything is pushed.
  void attach(lua_State* L);
  static Objects& of(lua_State* L);

  /// Pushes a handle that holds as long as `scope` is open. `memory`: what lives no longer than the handles
  /// of its owner; past the limit Lua collects its garbage first. Throws ScriptError (E_MEMORY) when the most
  /// that is allowed is in use.
  void push(lua_State* L, const Class& object, std::shared_ptr<void> target, std::shared_ptr<Scope> scope,
            const OwnedMemory& memory = {});
  /// Where things live that Lua alone owns.
  const std::shared_ptr<Scope>& own() const { return own_; }

  /// The class of the value at an index, or null if it is not one of our objects.
  static const Class* class_of(lua_State* L, int index);
  /// The C++ object behind the handle at an index. Throws ScriptError: E_EXPIRED when its scope is over.
  static std::shared_ptr<void> target_of(lua_State* L, const Class& object, int index);

  /// Frees what Lua dropped. At step boundaries: never inside a finaliser, where a device must not be waited
  /// for.
  void drain();
  /// A whole collection of garbage, then drain.
  void collect(lua_State* L);
  int64_t external_bytes() const { return external_bytes_; }
  int64_t live_handles() const { return live_handles_; }
  void set_limit(int64_t bytes) { limit_bytes_ = bytes; }
  /// From here on handles and Lua itself together keep at most so much; `hint` ends the message.
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
  /// Counts a handle that came, or one that has gone.
  void hold(const OwnedMemory& memory);
  void release(OwnedMemory& memory);

  struct Held {
    int64_t bytes = 0, num_handles = 0;
  };

  std::shared_ptr<Scope> own_;
  std::unordered_map<const void*, Held> held_;  // by owner
  std::vector<std::shared_ptr<void>> dropped_;
  int64_t external_bytes_ = 0, live_handles_ = 0;
  int64_t limit_bytes_ = int64_t{64} << 20;
  int64_t most_bytes_ = 0;  // 0: no limit
  std::string most_hint_;
};

/// One call of a body: its object, its checked arguments, and how results are pushed. Arguments count from 1.
class Call {
 public:
  lua_State* const L;
  Objects& objects;
  const std::shared_ptr<Scope>& scope;  // of the object

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
  /// Of kTokens: the ids of a list; nothing when it is text.
  std::optional<std::vector<int32_t>> tokens(int arg) const;
  /// Of kOptions and kAny: the value as data.
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
  /// An object of the same scope.
  int push_object(const Class& object, std::shared_ptr<void> target) {
    return objects.push(L, object, std::move(target), scope), 1;
  }
  /// An object that Lua owns.
  int push_own(const Class& object, std::shared_ptr<void> target, const OwnedMemory& memory = {}) {
    return objects.push(L, object, std::move(target), objects.own(), memory), 1;
  }

 private:
  void* target_;
};

}  // namespace tycho
