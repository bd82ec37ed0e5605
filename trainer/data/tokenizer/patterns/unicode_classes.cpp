// Derived from the general categories.
#include "trainer/data/tokenizer/patterns/unicode_classes.h"

#include <vector>

#include "trainer/data/tokenizer/patterns/unicode_categories.h"

namespace tycho {
namespace {

CharClass class_of(uint32_t code, Category category) {
  if (category >= Category::kLu && category <= Category::kLo) return CharClass::kLetter;
  if (category >= Category::kNd && category <= Category::kNo) return CharClass::kNumber;
  return is_white_space(code) ? CharClass::kSpace : CharClass::kOther;
}

std::vector<uint8_t> expand() {
  std::vector<uint8_t> classes(kCodePoints);
  for (uint32_t code = 0; code < kCodePoints; ++code)
    classes[code] = static_cast<uint8_t>(class_of(code, static_cast<Category>(categories()[code])));
  return classes;
}

}  // namespace

const uint8_t* char_classes() {
  static const std::vector<uint8_t> classes = expand();
  return classes.data();
}

}  // namespace tycho
