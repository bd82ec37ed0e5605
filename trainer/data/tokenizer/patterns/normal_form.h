// Unicode's normal forms of text, which a tokenizer.json names as normalizers.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// Returns the text in a normal form of Unicode (UAX 15). Bytes that are not valid UTF-8 stay as they are.
std::string normalized(NormalForm form, std::string_view text);

}  // namespace tycho
