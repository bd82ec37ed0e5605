// Asks the system where the stack of this thread lies.
#include "bindings/define/c_stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tycho {
namespace {

constexpr size_t kMost = size_t{4} << 20;  // for stacks without a limit

/// Returns the address below which no call of Lua may begin. The rest is reserved for errors and reports.
uintptr_t lowest_address() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* begin = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &begin, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<uintptr_t>(begin) + size - std::min(size / 2, kMost) : 0;
}

}  // namespace

void ensure_c_stack(lua_State* L) {
  thread_local const uintptr_t lowest = lowest_address();
  // The frame's address: a local may lie on a stack of the sanitizer's.
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest)
    luaL_error(L,
               "stopped: coroutines, comparisons or replacements are nested too deep: is there an endless "
               "recursion?");
}

}  // namespace tycho
