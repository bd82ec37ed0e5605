// Writes to a terminal or a pipe whose reader may stop reading. Torch-free.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tycho {

/// A stopped reader (Ctrl-S, a full pipe, a connection that died) holds up neither the caller nor signals.
/// The descriptor stays the caller's, and as it is: it may be shared with other processes. Owned by one
/// thread.
class ScreenWriter {
 public:
  explicit ScreenWriter(int fd);
  /// finish() with two seconds.
  ~ScreenWriter();
  ScreenWriter(const ScreenWriter&) = delete;
  ScreenWriter& operator=(const ScreenWriter&) = delete;

  /// For lines. What the reader does not take now is kept for a later call, up to 1 MiB. Beyond that it waits
  /// once, a second at most, and then drops lines until the reader has caught up; a line says how many. What
  /// cannot be written is dropped.
  void print(std::string_view text);
  /// For a picture that another one will replace: dropped while anything before it is not written. False when
  /// it was.
  bool draw(std::string_view picture);
  /// For an answer: waits for the reader until all is written, or until `gives_up`, which is asked ten times
  /// a second; the rest is dropped then. False, with errno, when it cannot be written.
  bool write_all(std::string_view text, const std::function<bool()>& gives_up);
  /// Waits until what is kept is written, as long as the reader takes some of it within `patience` and
  /// `gives_up` says nothing else.
  void finish(std::chrono::milliseconds patience, const std::function<bool()>& gives_up = nullptr);

 private:
  size_t put(std::string_view text);
  ssize_t put_part(std::string_view part) const;
  bool put_kept();
  bool wait(std::chrono::milliseconds patience) const;
  bool has_room_for(std::string_view text) const;
  void drop(std::string_view text);
  std::string after_dropped(std::string_view text);

  int fd_;
  int own_ = -1;  // the same file, opened again so that writing never waits; -1: it does not, or cannot
  bool is_socket_ = false, may_wait_ = false;
  int error_ = 0;
  std::string kept_;
  bool is_stalled_ = false;  // the wait for room was in vain, and nothing was read since
  int64_t dropped_lines_ = 0;
  bool in_dropped_line_ = false;
};

}  // namespace tycho
