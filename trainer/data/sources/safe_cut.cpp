// Finds where a long text can be cut without changing its tokens.
#include "trainer/data/sources/safe_cut.h"

namespace tycho {

size_t find_safe_cut(std::string_view text, size_t from) {
  for (size_t i = from > 0 ? from : 1; i < text.size(); ++i) {
    if (text[i] != ' ' && text[i] != '\n') continue;
    const char before = text[i - 1];
    const bool letter = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
    if (letter || (before >= '0' && before <= '9')) return i;
  }
  return std::string_view::npos;
}

}  // namespace tycho
