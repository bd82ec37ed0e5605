// One pool for the process: whoever speaks to a server, it is the same server.
#include "trainer/http/curl_loan.h"

#include <unistd.h>

#include <mutex>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {
namespace {

struct Pool {
  std::mutex mutex;
  std::vector<CURL*> idle;
  pid_t process = ::getpid();
};

/// Returns the pool, which outlives threads that still run when the process ends.
Pool& pool() {
  static Pool& pool = *new Pool;
  return pool;
}

/// Takes an idle handle; nullptr if there is none. A process that was forked leaves its parent's handles
/// alone: the connections are the parent's, and closing one would end it there too.
CURL* take_idle() {
  const std::lock_guard lock(pool().mutex);
  if (pool().process != ::getpid()) {
    pool().idle.clear();
    pool().process = ::getpid();
  }
  if (pool().idle.empty()) return nullptr;
  CURL* handle = pool().idle.back();
  pool().idle.pop_back();
  return handle;
}

}  // namespace

CurlLoan::CurlLoan() {
  const CurlLibrary& curl = curl_library();
  handle_ = take_idle();
  if (handle_ == nullptr) handle_ = curl.easy_init();
  if (handle_ == nullptr) fail(ExitCode::kFailure, "[http] libcurl made no handle: is memory short?");
}

CurlLoan::~CurlLoan() {
  curl_library().easy_reset(handle_);  // keeps its connections
  const std::lock_guard lock(pool().mutex);
  pool().idle.push_back(handle_);
}

}  // namespace tycho
