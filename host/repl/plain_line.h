// A line of the terminal as the terminal gives it, for systems without readline.
#pragma once
#include <functional>
#include <string>

namespace tycho {

/// How reading a line ended: with a line, by Ctrl-C, or for good.
enum class LineEnd { kLine, kInterrupted, kClosed };

/// Takes the first line of `buffered` and of what follows it in a file, without its end; later bytes stay in
/// `buffered`. `take_interrupt` is asked after every signal: when it returns true, what was typed is dropped.
LineEnd read_plain_line(int fd, std::string& buffered, const std::function<bool()>& take_interrupt,
                        std::string& line);

}  // namespace tycho
