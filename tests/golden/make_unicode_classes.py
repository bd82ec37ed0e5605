"""Writes trainer/data/unicode_classes.cpp: which code points GPT-2's pre-tokenisation takes for letters, numbers and
white space. The library `tokenizers` is asked about every one, so the table is that of its own regular expressions.

    python tests/golden/make_unicode_classes.py > trainer/data/unicode_classes.cpp
"""
import tokenizers
from tokenizers import pre_tokenizers

HEAD = """// Letters, numbers and white space of Unicode as ranges. Generated: edit tests/golden/make_unicode_classes.py instead.
// Asked of `tokenizers` {version}.
#include "trainer/data/unicode_classes.h"

#include <vector>

namespace tycho {{
namespace {{

struct Range {{
  uint32_t first, last;
}};

"""

TAIL = """void fill(std::vector<uint8_t>& classes, const Range* ranges, size_t count, CharClass value) {
  for (size_t i = 0; i < count; ++i)
    for (uint32_t c = ranges[i].first; c <= ranges[i].last; ++c) classes[c] = static_cast<uint8_t>(value);
}

std::vector<uint8_t> expand() {
  std::vector<uint8_t> classes(0x110000, static_cast<uint8_t>(CharClass::kOther));
  fill(classes, kLetters, std::size(kLetters), CharClass::kLetter);
  fill(classes, kNumbers, std::size(kNumbers), CharClass::kNumber);
  fill(classes, kSpaces, std::size(kSpaces), CharClass::kSpace);
  return classes;
}

}  // namespace

const uint8_t* char_classes() {
  static const std::vector<uint8_t> classes = expand();
  return classes.data();
}

}  // namespace tycho
"""


def classify(byte_level, character):
    """A character joins a run of its own class; white space joins none that begins with a visible character."""
    for name, neighbour in (("Letters", "a"), ("Numbers", "1"), ("other", "!")):
        if len(byte_level.pre_tokenize_str(neighbour + character)) == 1:
            return name
    return "Spaces"


def main():
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ranges = {"Letters": [], "Numbers": [], "Spaces": [], "other": []}
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        found = ranges[classify(byte_level, chr(code))]
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    print(HEAD.format(version=tokenizers.__version__), end="")
    for name in ("Letters", "Numbers", "Spaces"):
        items = ["{0x%X, 0x%X}" % (a, b) for a, b in ranges[name]]
        print("// clang-format off")
        print(f"constexpr Range k{name}[] = {{")
        for i in range(0, len(items), 5):
            print("    " + ", ".join(items[i:i + 5]) + ",")
        print("};\n// clang-format on\n")
    print(TAIL, end="")


main()
