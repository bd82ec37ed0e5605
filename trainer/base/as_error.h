// Any exception as Tycho's own: which code and text a failure has, wherever it is recorded.
#pragma once
#include <cerrno>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "trainer/base/error.h"

namespace tycho {

/// Returns the error itself, or an Error with the text of another exception and the exit code that fits its
/// type; `unknown` where the type does not tell. Run records and exit codes agree because both use this
/// function.
inline Error as_error(const std::exception& error, ExitCode unknown = ExitCode::kFailure) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return *own;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return Error("[tycho] out of memory", ExitCode::kNumerics);
  const std::string text = error.what();
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr)
    return Error("[tycho] " + text, ExitCode::kUnusable);
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  if (refused != nullptr && (refused->code().value() == ENOMEM || refused->code().value() == EAGAIN))
    return Error(
        fmt::format("[tycho] out of memory, or of threads: {}; `ulimit -v` and `ulimit -u` limit them", text),
        ExitCode::kNumerics);
  return Error("[tycho] " + text, unknown);
}

}  // namespace tycho
