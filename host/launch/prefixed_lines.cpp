// Cuts a stream into lines.
#include "host/launch/prefixed_lines.h"

#include <utility>

namespace tycho {
namespace {

constexpr size_t kMaxLine = 64 << 10;

}  // namespace

void PrefixedLines::put_line(std::string& out, std::string_view line) const {
  out += prefix_;
  out += line;
  out += '\n';
}

std::string PrefixedLines::add(std::string_view bytes) {
  rest_ += bytes;
  std::string out;
  size_t begin = 0;
  for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    put_line(out, std::string_view(rest_).substr(begin, end - begin));
  for (; rest_.size() - begin > kMaxLine; begin += kMaxLine)
    put_line(out, std::string_view(rest_).substr(begin, kMaxLine));
  rest_.erase(0, begin);
  return out;
}

std::string PrefixedLines::finish() {
  std::string out;
  if (!rest_.empty()) put_line(out, rest_);
  rest_.clear();
  return out;
}

}  // namespace tycho
