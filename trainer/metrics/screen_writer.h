// Writes to a terminal or a pipe whose reader may stop reading. Torch-free.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tycho {

/// A stopped reader (Ctrl-S, a full pipe, a dead connection) blocks neither the caller nor signals. The
/// caller keeps the descriptor, whose flags stay unchanged because other processes may share it. Owned by one
/// thread. A thread of its own, started when a reader first stops, writes the kept text when it reads again.
class ScreenWriter {
 public:
  explicit ScreenWriter(int fd);
  /// Calls finish() with two seconds.
  ~ScreenWriter();
  ScreenWriter(const ScreenWriter&) = delete;
  ScreenWriter& operator=(const ScreenWriter&) = delete;

  /// Writes lines. Text that the reader does not accept now is kept until it does, up to 1 MiB. Beyond
  /// that it waits once, at most a second, and then drops lines until the reader has caught up; a line says
  /// how many. Text that cannot be written is dropped.
  void print(std::string_view text);
  /// Writes a picture that a later one will replace. Drops it and returns false while earlier text is not
  /// written.
  bool draw(std::string_view picture);
  /// Writes an answer: waits for the reader until all is written, or until `gives_up`, called ten times a
  /// second, returns true; the rest is then dropped. Returns false, with errno, when it cannot be written.
  bool write_all(std::string_view text, const std::function<bool()>& gives_up);
  /// Waits until the kept text is written, as long as the reader accepts some of it within `patience` and
  /// `gives_up` returns false.
  void finish(std::chrono::milliseconds patience, const std::function<bool()>& gives_up = nullptr);

 private:
  size_t put(std::string_view text);
  ssize_t put_part(std::string_view part) const;
  bool put_kept();
  bool wait(std::chrono::milliseconds patience) const;
  bool has_room_for(std::string_view text) const;
  void drop(std::string_view text);
  std::string after_dropped(std::string_view text);
  void write_later();
  void write_kept_text();

  std::mutex mutex_;  // guards all below
  int fd_;
  int own_ =
      -1;  // the same file, reopened so that writes never wait; -1 when that is not needed or not possible
  bool is_socket_ = false, may_wait_ = false;
  int error_ = 0;
  std::string kept_;
  bool is_stalled_ = false;  // waiting for space failed, and nothing was read since
  int64_t dropped_lines_ = 0;
  bool in_dropped_line_ = false;
  int wake_ = -1;  // event counter; -1 before the thread is started, or where there can be none
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tycho
