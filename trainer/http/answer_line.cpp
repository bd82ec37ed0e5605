// Control characters become spaces.
#include "trainer/http/answer_line.h"

#include <algorithm>

#include "trainer/base/secrets.h"

namespace tycho {

std::string answer_line(std::string_view text, size_t most_bytes) {
  std::string line = without_secrets(std::string(text));
  line.resize(std::min(line.size(), most_bytes));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  return line;
}

}  // namespace tycho
