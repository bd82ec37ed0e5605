// What LibTorch raises, as the one exception of Tycho.
#pragma once
#include <c10/util/Exception.h>

#include "trainer/base/error.h"

namespace tycho {

/// Calls `body`; LibTorch's errors leave as Error, without their C++ backtrace.
template <class Body>
auto with_own_errors(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::OutOfMemoryError& error) {
    fail(ExitCode::kNumerics, "[memory] {}", error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    const bool memory = text.find("not enough memory") != std::string::npos;
    fail(memory ? ExitCode::kNumerics : ExitCode::kFailure, "[torch] {}", text);
  }
}

}  // namespace tycho
