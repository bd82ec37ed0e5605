// Two functions that libstdc++ 12 gave new versions (GLIBCXX_3.4.30), for packages that run with the
// libstdc++ 11 of RHEL 9. cmake/Package.cmake links this file.
#include <pthread.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

namespace std {

void condition_variable::wait(unique_lock<mutex>& lock) {
  if (pthread_cond_wait(native_handle(), lock.mutex()->native_handle()) != 0) std::terminate();
}

// Reports a failed check of _GLIBCXX_ASSERTIONS.
[[noreturn]] void __glibcxx_assert_fail(const char* file, int line, const char* function,
                                        const char* condition) noexcept {
  std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function, condition);
  std::abort();
}

}  // namespace std
