// A library to preload: the system refuses threads after the first TYCHO_MOST_THREADS.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<int> g_made = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  const char* most = std::getenv("TYCHO_MOST_THREADS");
  if (most != nullptr && g_made++ >= std::atoi(most)) return EAGAIN;
  return create(thread, attributes, run, argument);
}
