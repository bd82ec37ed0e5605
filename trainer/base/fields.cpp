// Puts the rules of a field together.
#include "trainer/base/fields.h"

#include <algorithm>

namespace tycho {

Rule combine(std::initializer_list<Rule> rules) {
  Rule all;
  auto former = all.former.begin();
  for (const Rule& rule : rules) {
    if (rule.min) all.min = rule.min, all.min_exclusive = rule.min_exclusive;
    if (rule.max) all.max = rule.max, all.max_exclusive = rule.max_exclusive;
    if (rule.multiple_of) all.multiple_of = rule.multiple_of;
    all.required |= rule.required;
    if (*rule.units != 0) all.units = rule.units;
    for (const FormerName& old : rule.former)
      if (*old.name != 0 && former != all.former.end()) *former++ = old;
    if (*rule.deprecated != 0) all.deprecated = rule.deprecated;
  }
  return all;
}

}  // namespace tycho
