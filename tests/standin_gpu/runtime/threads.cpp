// Threads of the host: what one knows when it starts another, ends, or leaves a lock of Tycho's own code, the
// other knows that it starts, that joins it, or that takes the lock next. LibTorch's locks order nothing:
// they protect its lists, not the memory in them.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

#include "tests/standin_gpu/runtime/checker.h"

namespace {

/// Function of this name behind this library. Conditions have an old form, which a name alone may mean.
template <class Function>
Function* real(Function*, const char* name) {
  void* const newer = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return reinterpret_cast<Function*>(newer != nullptr ? newer : dlsym(RTLD_NEXT, name));
}

std::atomic<long> num_marks = 0;

struct Start {
  void* (*run)(void*);
  void* argument;
  long begin, end;  // marks
};

void* begin(void* given) {
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  standin::begun(start.begin);
  void* const result = start.run(start.argument);
  standin::ends(start.end);
  return result;
}

/// Addresses of the engine's code, which is loaded before anything is put on a stream.
class OwnCode {
 public:
  bool has(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (const standin::Bytes& part : parts_)
      if (at >= part.begin && at < part.end) return true;
    return false;
  }
  OwnCode() { dl_iterate_phdr(add, this); }

 private:
  static int add(dl_phdr_info* library, size_t, void* own) {
    if (std::strstr(library->dlpi_name, "libtycho_engine") == nullptr) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const auto& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      const uintptr_t from = library->dlpi_addr + part.p_vaddr;
      static_cast<OwnCode*>(own)->parts_.push_back({from, from + part.p_memsz});
    }
    return 0;
  }
  std::vector<standin::Bytes> parts_;
};

/// Marks of locks that Tycho's code has taken.
struct Marks {
  std::mutex mutex;
  std::map<const void*, long> of_locks;
  std::map<pthread_t, long> of_ends;
};
Marks& marks() {
  static auto* const all = new Marks;
  return *all;
}

/// The mark of a lock that `caller` takes or leaves; 0 if that is not Tycho's code.
long mark_of(const void* lock, const void* caller) {
  if (!standin::is_in_use()) return 0;
  static auto* const own_code = new OwnCode;
  if (!own_code->has(caller)) return 0;
  const std::lock_guard guard(marks().mutex);
  long& mark = marks().of_locks[lock];
  return mark == 0 ? mark = ++num_marks : mark;
}

/// Runs a wait on a condition, which leaves the lock and takes it again.
template <class Wait>
int without_lock(const void* lock, const Wait& wait) {
  long mark = 0;
  if (standin::is_in_use()) {
    const std::lock_guard guard(marks().mutex);
    if (const auto found = marks().of_locks.find(lock); found != marks().of_locks.end()) mark = found->second;
  }
  if (mark != 0) standin::handed_over(mark);
  const int result = wait();
  if (mark != 0) standin::took_over(mark);
  return result;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  static const auto create = real(&pthread_create, "pthread_create");
  if (!standin::is_in_use()) return create(thread, attributes, run, argument);
  auto* const start = new Start{run, argument, ++num_marks, ++num_marks};
  const long end = start->end;
  standin::handed_over(start->begin);
  const int error = create(thread, attributes, begin, start);
  if (error != 0) {
    delete start;
    return error;
  }
  const std::lock_guard guard(marks().mutex);
  marks().of_ends[*thread] = end;
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  static const auto join = real(&pthread_join, "pthread_join");
  const int error = join(thread, result);
  long end = 0;
  {
    const std::lock_guard guard(marks().mutex);
    if (const auto found = marks().of_ends.find(thread); found != marks().of_ends.end()) {
      end = found->second;
      marks().of_ends.erase(found);
    }
  }
  if (end != 0) standin::took_over(end);
  return error;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto lock = real(&pthread_mutex_lock, "pthread_mutex_lock");
  const int error = lock(mutex);
  if (const long mark = mark_of(mutex, __builtin_return_address(0)); mark != 0) standin::took_over(mark);
  return error;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  static const auto unlock = real(&pthread_mutex_unlock, "pthread_mutex_unlock");
  if (const long mark = mark_of(mutex, __builtin_return_address(0)); mark != 0) standin::handed_over(mark);
  return unlock(mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto wait = real(&pthread_cond_wait, "pthread_cond_wait");
  return without_lock(mutex, [&] { return wait(condition, mutex); });
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  static const auto wait = real(&pthread_cond_clockwait, "pthread_cond_clockwait");
  return without_lock(mutex, [&] { return wait(condition, mutex, clock, until); });
}

}  // extern "C"
