// Why a rank ended, as the text that it leaves for the others. Torch-free.
#pragma once
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/secrets.h"

namespace tycho {

/// "12 [data] shard.00003.mds is damaged": the exit code, then the message.
inline std::string exit_reason(const Error& error) {
  return fmt::format("{} {}", static_cast<int>(error.code()), without_secrets(error.what()));
}

/// The error of rank `rank`, as other ranks report it. `reason`: what exit_reason wrote there.
inline Error ended_by(size_t rank, const std::string& reason) {
  const size_t space = reason.find(' ');
  return Error(fmt::format("[parallel] rank {} ended the run: {}", rank, reason.substr(space + 1)),
               static_cast<ExitCode>(std::stoi(reason.substr(0, space))));
}

}  // namespace tycho
