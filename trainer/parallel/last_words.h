// The error that a departing rank reports to the others, as text. Torch-free.
#pragma once
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/secrets.h"

namespace tycho {

/// "12 [data] shard.00003.mds is damaged": the exit code, then the message. The others do not know the
/// secrets of this rank.
inline std::string last_words(const Error& error) {
  return fmt::format("{} {}", static_cast<int>(error.code()), without_secrets(error.what()));
}

/// The same error as other ranks report it.
inline Error ended_by(size_t rank, const std::string& words) {
  const size_t space = words.find(' ');
  return Error(fmt::format("[parallel] rank {} ended the run: {}", rank, words.substr(space + 1)),
               static_cast<ExitCode>(std::stoi(words.substr(0, space))));
}

}  // namespace tycho
