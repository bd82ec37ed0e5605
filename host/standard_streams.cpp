// glibc lets a program replace stdout and stderr, so that what libraries print takes the same way.
#include "host/standard_streams.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "trainer/metrics/control_filter.h"
#include "trainer/metrics/screen_writer.h"

namespace tycho {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{2000};

struct Stream {
  explicit Stream(int fd) : writer(fd), is_terminal(isatty(fd) != 0), waits(fd == STDOUT_FILENO) {}
  ScreenWriter writer;
  ControlFilter filter;
  bool is_terminal, waits, is_exact = false;
};

// Never deleted: exit() flushes the streams after static objects are gone.
Stream* g_out = nullptr;
Stream* g_err = nullptr;
std::function<bool()>* g_stopped = nullptr;

ssize_t write_to(void* cookie, const char* data, size_t size) {
  Stream& stream = *static_cast<Stream*>(cookie);
  const std::string_view given(data, size);
  const std::string text = stream.is_exact ? std::string(given) : stream.filter.add(given);
  if (!stream.waits) {
    stream.writer.print(text);
    return static_cast<ssize_t>(size);
  }
  return stream.writer.write_all(text, *g_stopped) ? static_cast<ssize_t>(size) : 0;
}

Stream* put_behind(FILE*& file, int fd) {
  auto* stream = new Stream(fd);
  FILE* opened =
      fopencookie(stream, "w", {.read = nullptr, .write = write_to, .seek = nullptr, .close = nullptr});
  if (opened == nullptr) return stream;  // no memory: the file stays as it is
  file = opened;
  std::setvbuf(file, nullptr, fd == STDERR_FILENO ? _IONBF : stream->is_terminal ? _IOLBF : _IOFBF, BUFSIZ);
  return stream;
}

Stream* stream_of(FILE* file) { return file == stdout ? g_out : file == stderr ? g_err : nullptr; }

}  // namespace

void take_standard_streams(std::function<bool()> stopped) {
  g_stopped = new std::function<bool()>(std::move(stopped));
  g_out = put_behind(stdout, STDOUT_FILENO);
  g_err = put_behind(stderr, STDERR_FILENO);
}

void never_wait_for_readers() {
  if (g_out != nullptr) g_out->waits = false;
}

void print_exact_text(bool always) {
  if (g_out != nullptr) g_out->is_exact = always || !g_out->is_terminal;
}

void draw_on(FILE* out, std::string_view sequence, std::string_view text) {
  ControlFilter filter;
  std::string picture(sequence);
  picture += filter.add(text);
  picture += filter.finish();
  std::fflush(out);
  if (Stream* stream = stream_of(out)) {
    flockfile(out);
    stream->writer.draw(picture);
    funlockfile(out);
  } else {
    std::fwrite(picture.data(), 1, picture.size(), out);
    std::fflush(out);
  }
}

void finish_standard_streams() {
  if (g_out == nullptr) return;
  const milliseconds patience = g_out->waits ? milliseconds::max() : kPatience;
  std::fflush(stdout);
  for (Stream* stream : {g_out, g_err}) {
    stream->writer.print(stream->filter.finish());
    stream->writer.finish(patience, *g_stopped);
  }
}

}  // namespace tycho
