// Lines of standard input, read while others work.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tycho {

/// Reads standard input on a thread of its own during its lifetime.
class LineReader {
 public:
  /// `take` gets each line first, on the reader's thread; a line for which it returns true is not returned by
  /// next().
  explicit LineReader(std::function<bool(const std::string& line)> take);
  /// Waits for the next line and returns it without its end; nullopt at the end of the input.
  std::optional<std::string> next();

 private:
  void read(const std::stop_token& over);
  void add(std::string line);

  std::function<bool(const std::string&)> take_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool at_end_ = false;
  std::jthread thread_;
};

}  // namespace tycho
