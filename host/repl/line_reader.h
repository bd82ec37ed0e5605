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

/// Reads on a thread of its own while it lives.
class LineReader {
 public:
  /// `take` sees each line first, on the reader's thread: true when nobody else is to get it.
  explicit LineReader(std::function<bool(const std::string& line)> take);
  /// The next line without its end, when it is there; nothing at the end of the input.
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
