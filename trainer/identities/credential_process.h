// A command that prints credentials.
#pragma once
#include <stop_token>
#include <string>
#include <vector>

namespace tycho {

/// Returns the words of a command line, with quotes and backslashes as in a POSIX shell, and nothing else of
/// one. Throws Error (kUnusable) when a quote is not closed.
std::vector<std::string> command_words(const std::string& command);

/// Runs a command, without a shell, and returns what it prints. Throws Error: kUnusable with the end of what
/// it says when it fails or takes longer than a minute, kTerminated on a stop.
std::string output_of(const std::string& command, const std::stop_token& stop);

}  // namespace tycho
