// Converts LibTorch's exceptions to tycho::Error.
#pragma once
#include <c10/util/Exception.h>

#include "trainer/base/error.h"

namespace tycho {

[[noreturn]] inline void fail_out_of_memory(const std::string& what) {
  fail(ExitCode::kNumerics,
       "[memory] {}. `tycho plan` shows what a run takes; a smaller micro_batch or recompute.mode reduces it",
       what);
}

/// Calls `body` and converts LibTorch's errors to Error, without their C++ backtrace.
template <class Body>
auto with_own_errors(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError& error) {
    fail_out_of_memory(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("not enough memory") != std::string::npos) fail_out_of_memory(text);
    fail(ExitCode::kFailure, "[torch] {}", text);
  }
}

}  // namespace tycho
