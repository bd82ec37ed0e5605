// The class of a code point, as the pre-tokenisation of byte-level BPE sees it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tycho {

/// \p{L}, \p{N}, \s and all the rest.
enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

/// Returns one CharClass per code point, 0x110000 of them. Built at the first call; later calls return the
/// same pointer.
const uint8_t* char_classes();

}  // namespace tycho
