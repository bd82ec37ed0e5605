// General categories of Unicode 16, as Hugging Face's regular expressions know them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tycho {

inline constexpr uint32_t kCodePoints = 0x110000;

/// Named as in the standard (UAX 44): kLu is an upper case letter.
enum class Category : uint8_t {
  kCn,
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,
  kMn,
  kMc,
  kMe,
  kNd,
  kNl,
  kNo,
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,
  kSm,
  kSc,
  kSk,
  kSo,
  kZs,
  kZl,
  kZp,
  kCc,
  kCf,
  kCs,
  kCo
};

/// Names of the values, in their order.
inline constexpr const char* kCategoryNames[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                                 "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                                 "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

/// Code points from `first` to `last`, both included.
struct CodeRange {
  uint32_t first, last;
};

/// Returns one Category per code point, kCodePoints of them. Built at the first call; later calls return the
/// same pointer.
const uint8_t* categories();

/// Returns the code points whose category has its bit in the mask (bit 0: kCn), in order.
std::vector<CodeRange> ranges_of(uint32_t mask);

/// True for the property White_Space.
constexpr bool is_white_space(uint32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

}  // namespace tycho
