// Handles: creating, checking, calling and releasing them.
#include "bindings/run/objects.h"

#include <new>
#include <utility>

#include "bindings/run/arguments.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

const char kObjectsKey = 0;  // its address, in the registry
const char kClassKey = 0;    // its address, in the metatables of handles

std::string given_key(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TSTRING) return lua_tostring(L, index);
  if (lua_type(L, index) == LUA_TNUMBER) return fmt::format("[{}]", lua_tonumber(L, index));
  return fmt::format("[{}]", luaL_typename(L, index));
}

[[noreturn]] void refuse_member(const Class& object, const std::string& key) {
  std::vector<std::string> names;
  for (const Field& field : object.fields) names.emplace_back(field.name);
  for (const Method& method : object.methods) names.emplace_back(method.name);
  const std::string near = did_you_mean(key, names);
  const std::string hint =
      object.hint != nullptr ? object.hint : fmt::format("{} has {}", object.name, fmt::join(names, ", "));
  throw ScriptError("E_NAME", fmt::format("{} has no {}{}", object.name, key, near), hint);
}

template <class T>
const T& upvalue(lua_State* L, int i) {
  return *static_cast<const T*>(lua_touserdata(L, lua_upvalueindex(i)));
}

}  // namespace

/// A handle; stored in Lua's memory, which does not move.
struct Handle {
  std::shared_ptr<void> target;  // null once the scope is closed
  std::shared_ptr<Scope> scope;
  Handle *previous = nullptr, *next = nullptr;  // neighbours in the scope's list, or null
  OwnedMemory memory;
  Objects* objects = nullptr;  // null until it is complete
};

void Scope::close() {
  open_ = false;
  while (first_ != nullptr) {
    Handle& handle = *first_;
    first_ = handle.next;
    handle.previous = handle.next = nullptr;
    handle.objects->release(handle.memory);
    const std::shared_ptr<void> freed = std::move(handle.target);
  }
}

Objects::Objects() : own_(std::make_shared<Scope>("Lua", /*may_act=*/true)) {}

void Objects::attach(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&kObjectsKey));
  lua_pushlightuserdata(L, this);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

Objects& Objects::of(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&kObjectsKey));
  lua_rawget(L, LUA_REGISTRYINDEX);
  auto* objects = static_cast<Objects*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  TYCHO_CHECK(objects != nullptr, "[objects] this Lua state has no objects attached");
  return *objects;
}

void Objects::push(lua_State* L, const Class& object, std::shared_ptr<void> target,
                   std::shared_ptr<Scope> scope, const OwnedMemory& memory) {
  luaL_checkstack(L, 4, "objects");
  if (memory.bytes > 0 && !held_.contains(memory.owner)) make_room(L, memory.bytes);
  const size_t most = dropped_.size() + static_cast<size_t>(live_handles_) + 1;
  if (dropped_.capacity() < most) dropped_.reserve(2 * most);  // finalisers must not throw
  auto* handle = new (lua_newuserdata(L, sizeof(Handle))) Handle();
  push_metatable(L, object);
  lua_setmetatable(L, -2);
  handle->objects = this;
  if (scope->open()) {
    handle->memory = memory;
    hold(memory);
    handle->target = std::move(target);
    handle->next = scope->first_;
    if (scope->first_ != nullptr) scope->first_->previous = handle;
    scope->first_ = handle;
  }
  handle->scope = std::move(scope);
  ++live_handles_;
}

void Objects::make_room(lua_State* L, int64_t bytes) {
  if (external_bytes_ + bytes > limit_bytes_) {
    collect(L);
    // When most of it is in use, collecting at every object would be useless.
    if (external_bytes_ + bytes > limit_bytes_ * 4 / 5)
      limit_bytes_ = std::max(limit_bytes_ * 7 / 5, external_bytes_ + bytes);
  }
  if (most_bytes_ == 0) return;
  const auto used = [&] { return external_bytes_ + bytes + int64_t{lua_gc(L, LUA_GCCOUNT, 0)} * 1024; };
  if (used() > most_bytes_) collect(L);
  if (used() > most_bytes_)
    throw ScriptError("E_MEMORY",
                      fmt::format("expected at most {} MiB of tensors and other values of Lua, got {} MiB{}",
                                  most_bytes_ >> 20, (used() >> 20) + 1, most_hint_),
                      "keep fewer or smaller tensors, or set lua_memory higher");
}

void Objects::hold(const OwnedMemory& memory) {
  if (memory.bytes == 0) return;
  OwnerMemory& held = held_[memory.owner];
  if (held.num_handles++ == 0) external_bytes_ += held.bytes = memory.bytes;
}

void Objects::release(OwnedMemory& memory) {
  const auto held = held_.find(std::exchange(memory, {}).owner);
  if (held == held_.end() || --held->second.num_handles > 0) return;
  external_bytes_ -= held->second.bytes;
  held_.erase(held);
}

int Objects::finalise(lua_State* L) {
  auto* handle = static_cast<Handle*>(lua_touserdata(L, 1));
  if (handle->objects != nullptr) {
    Objects& objects = *handle->objects;
    if (handle->target) {
      objects.dropped_.push_back(std::move(handle->target));
      if (handle->next != nullptr) handle->next->previous = handle->previous;
      (handle->previous != nullptr ? handle->previous->next : handle->scope->first_) = handle->next;
    }
    objects.release(handle->memory);
    --objects.live_handles_;
  }
  handle->~Handle();
  return 0;
}

void Objects::drain() { dropped_.clear(); }

void Objects::collect(lua_State* L) {
  lua_gc(L, LUA_GCCOLLECT, 0);
  drain();
}

const Class* Objects::class_of(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA || lua_getmetatable(L, index) == 0) return nullptr;
  lua_pushlightuserdata(L, const_cast<char*>(&kClassKey));
  lua_rawget(L, -2);
  const auto* found = static_cast<const Class*>(lua_touserdata(L, -1));
  lua_pop(L, 2);
  return found;
}

Handle& Objects::handle_at(lua_State* L, const Class& object, const char* what, int index) {
  if (class_of(L, index) != &object)
    throw ScriptError("E_ARGUMENT", fmt::format("{0}.{1} is called without its {0}", object.name, what),
                      fmt::format("write {}:{}(...), with a colon", object.name, what));
  auto& handle = *static_cast<Handle*>(lua_touserdata(L, index));
  if (!handle.scope->open())
    throw ScriptError(
        "E_EXPIRED",
        fmt::format("this {} belonged to {}, which has ended", object.name, handle.scope->name()),
        "to keep data, use tensor:keep() or plain numbers");
  return handle;
}

int Objects::index(lua_State* L) {
  return protect(L, [&] {
    const Class& object = upvalue<Class>(L, 1);
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(2));  // members: functions, and fields as they are declared
    if (lua_isfunction(L, -1)) return 1;
    const auto* field = static_cast<const Field*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    if (field != nullptr) {
      Handle& handle = handle_at(L, object, field->name);
      const LuaWatch::EngineCall waits;
      Call call(L, *handle.objects, handle.scope, handle.target.get());
      return field->read(call);
    }
    const std::string key = given_key(L, 2);
    Handle& handle = handle_at(L, object, key.c_str());
    const LuaWatch::EngineCall waits;
    Call call(L, *handle.objects, handle.scope, handle.target.get());
    if (object.index != nullptr) {
      object.index(call);
      if (!lua_isnil(L, -1)) return 1;
    }
    refuse_member(object, key);
  });
}

int Objects::refuse_write(lua_State* L) {
  return protect(L, [&]() -> int {
    const Class& object = upvalue<Class>(L, 1);
    throw ScriptError("E_NAME",
                      fmt::format("{} is read-only: {} cannot be set", object.name, given_key(L, 2)),
                      object.hint != nullptr ? object.hint : "");
  });
}

int Objects::call_method(lua_State* L) {
  return protect(L, [&] {
    const Class& object = upvalue<Class>(L, 1);
    const Method& method = upvalue<Method>(L, 2);
    Handle& handle = handle_at(L, object, method.name);
    if (method.acts && !handle.scope->may_act())
      throw ScriptError("E_CONTEXT",
                        fmt::format("{}:{} changes the run, but {} is read-only", object.name, method.name,
                                    handle.scope->name()),
                        "a t.control callback queues commands with ctx.cmd");
    check_arguments(L, object, method);
    // The body may close the scope, or collect: what it works on stays until it returns.
    const std::shared_ptr<Scope> scope = handle.scope;
    const std::shared_ptr<void> target = handle.target;
    const LuaWatch::EngineCall waits;
    Call call(L, *handle.objects, scope, target.get());
    return method.call(call);
  });
}

// __tostring, __call and __len: the body is the second upvalue, its name the third.
int Objects::call_hook(lua_State* L) {
  return protect(L, [&] {
    const Class& object = upvalue<Class>(L, 1);
    const auto body = reinterpret_cast<Body>(lua_touserdata(L, lua_upvalueindex(2)));
    Handle& handle = handle_at(L, object, lua_tostring(L, lua_upvalueindex(3)));
    const std::shared_ptr<void> target = handle.target;
    Call call(L, *handle.objects, handle.scope, target.get());
    return body(call);
  });
}

std::shared_ptr<void> Objects::target_of(lua_State* L, const Class& object, int index) {
  return handle_at(L, object, "operand", index).target;
}

// Of the operand that is the object, the first one when both are. Upvalues as for call_hook.
int Objects::call_operator(lua_State* L) {
  return protect(L, [&] {
    const Class& object = upvalue<Class>(L, 1);
    const auto body = reinterpret_cast<Body>(lua_touserdata(L, lua_upvalueindex(2)));
    const int index = class_of(L, 1) == &object ? 1 : 2;
    Handle& handle = handle_at(L, object, lua_tostring(L, lua_upvalueindex(3)), index);
    const std::shared_ptr<void> target = handle.target;
    Call call(L, *handle.objects, handle.scope, target.get());
    return body(call);
  });
}

// An object without a text of its own says what it is for.
int Objects::tell_class(lua_State* L) {
  return protect(L, [&] {
    const Class& object = upvalue<Class>(L, 1);
    const std::string text = fmt::format("{0}: {1}  ?{0} lists what it has", object.name, object.doc);
    lua_pushlstring(L, text.data(), text.size());
    return 1;
  });
}

void Objects::push_metatable(lua_State* L, const Class& object) {
  lua_pushlightuserdata(L, const_cast<Class*>(&object));
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (!lua_isnil(L, -1)) return;
  lua_pop(L, 1);
  lua_createtable(L, 0, 10);
  const auto add = [&](const char* event, lua_CFunction function, int num_upvalues) {
    lua_pushcclosure(L, function, num_upvalues);
    lua_setfield(L, -2, event);
  };
  const auto self = [&] { lua_pushlightuserdata(L, const_cast<Class*>(&object)); };
  const auto hook = [&](const char* event, Body body, const char* name,
                        lua_CFunction call = &Objects::call_hook) {
    if (body == nullptr) return;
    self();
    lua_pushlightuserdata(L, reinterpret_cast<void*>(body));
    lua_pushstring(L, name);
    add(event, call, 3);
  };
  self();
  lua_createtable(L, 0, static_cast<int>(object.methods.size() + object.fields.size()));
  for (const Field& field : object.fields) {
    lua_pushlightuserdata(L, const_cast<Field*>(&field));
    lua_setfield(L, -2, field.name);
  }
  for (const Method& method : object.methods) {
    self();
    lua_pushlightuserdata(L, const_cast<Method*>(&method));
    lua_pushcclosure(L, &Objects::call_method, 2);
    lua_setfield(L, -2, method.name);
  }
  add("__index", &Objects::index, 2);
  self();
  add("__newindex", &Objects::refuse_write, 1);
  add("__gc", &Objects::finalise, 0);
  if (object.text != nullptr) {
    hook("__tostring", object.text, "tostring");
  } else {
    self();
    add("__tostring", &Objects::tell_class, 1);
  }
  hook("__call", object.iterate, "iterate");
  hook("__len", object.length, "length");
  for (const Operator& one : object.operators) hook(one.event, one.apply, one.event, &Objects::call_operator);
  lua_pushstring(L, object.name);
  lua_setfield(L, -2, "__metatable");
  lua_pushlightuserdata(L, const_cast<char*>(&kClassKey));
  self();
  lua_rawset(L, -3);
  self();
  lua_pushvalue(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
}

std::string Call::text(int arg, const std::string& otherwise) const {
  if (!has(arg)) return otherwise;
  size_t size = 0;
  const char* text = lua_tolstring(L, arg + 1, &size);
  return {text, size};
}

Duration Call::duration(int arg) const { return Duration::parse(text(arg)); }

std::optional<std::vector<int32_t>> Call::tokens(int arg) const {
  if (lua_type(L, arg + 1) == LUA_TSTRING) return std::nullopt;
  std::vector<int32_t> ids(lua_objlen(L, arg + 1));
  for (size_t i = 0; i < ids.size(); ++i) {
    lua_rawgeti(L, arg + 1, static_cast<int>(i) + 1);
    ids[i] = static_cast<int32_t>(lua_tonumber(L, -1));
    lua_pop(L, 1);
  }
  return ids;
}

}  // namespace tycho
