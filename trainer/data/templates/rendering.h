// Position of the reader or renderer in a template, and the limits of its work.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "trainer/base/error.h"

namespace tycho::jinja {

/// Limits that keep an untrusted template from hanging a run or filling its memory.
inline constexpr int64_t kMaxTemplateBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxEffort = 50'000'000;  // limit of one rendering: bytes made, and steps
inline constexpr int64_t kStepEffort = 16;         // cost of an expression, a statement or a turn of a loop
inline constexpr int64_t kMaxValueBytes = int64_t{64} << 20;
inline constexpr int kMaxNesting = 100;  // limit of syntax and of values
inline constexpr int kMaxCallDepth = 400;

struct Rendering {
  std::string place;  // name of the template, for messages
  int line = 1;
  int64_t effort_left = kMaxEffort;
  int call_depth = 0;

  /// Throws Error (kUnusable) "[place:line] ...".
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kUnusable, "[{}:{}] {}", place, line, fmt::format(format, std::forward<Args>(args)...));
  }
  /// Counts steps, or bytes that are made or read. Throws Error when effort_left is used up.
  void charge(int64_t effort) {
    effort_left -= effort;
    if (effort_left < 0) wrong("the template does too much: expected at most {} steps and bytes", kMaxEffort);
  }
};

/// Counts nested calls of the reader or the renderer while it lives, because the stack is limited.
class CallDepth {
 public:
  explicit CallDepth(Rendering& rendering) : rendering_(rendering) {
    if (++rendering_.call_depth > kMaxCallDepth)
      rendering_.wrong("expressions, blocks or calls are nested more than {} deep", kMaxCallDepth);
  }
  ~CallDepth() { --rendering_.call_depth; }
  CallDepth(const CallDepth&) = delete;
  CallDepth& operator=(const CallDepth&) = delete;

 private:
  Rendering& rendering_;
};

}  // namespace tycho::jinja
