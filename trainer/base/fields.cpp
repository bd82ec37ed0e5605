// Puts the rules of a field together.
#include "trainer/base/fields.h"

namespace tycho {

Rule combine(std::initializer_list<Rule> rules) {
  Rule all;
  for (const Rule& rule : rules) {
    if (rule.min) all.min = rule.min, all.min_exclusive = rule.min_exclusive;
    if (rule.max) all.max = rule.max, all.max_exclusive = rule.max_exclusive;
    if (rule.multiple_of) all.multiple_of = rule.multiple_of;
    all.required |= rule.required;
    if (*rule.units != 0) all.units = rule.units;
  }
  return all;
}

}  // namespace tycho
