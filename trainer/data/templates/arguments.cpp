// Binds positional arguments first, then named ones.
#include "trainer/data/templates/arguments.h"

#include <algorithm>

namespace tycho::jinja {

std::vector<std::optional<Value>> Arguments::bind(std::string_view what,
                                                  std::initializer_list<const char*> names,
                                                  size_t num_required, const Rendering& rendering) const {
  std::vector<std::optional<Value>> bound(names.size());
  if (values.size() > names.size())
    rendering.wrong("{} takes at most {} arguments, got {}", what, names.size(), values.size());
  std::copy(values.begin(), values.end(), bound.begin());
  for (const auto& [name, value] : named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) rendering.wrong("{} has no argument {} here", what, name);
    bound[static_cast<size_t>(found - names.begin())] = value;
  }
  for (size_t i = 0; i < num_required; ++i)
    if (!bound[i]) rendering.wrong("{} needs the argument {}", what, *(names.begin() + i));
  return bound;
}

std::string text_or(const std::optional<Value>& given, std::string otherwise, const Rendering& rendering) {
  if (!given || given->is<None>()) return otherwise;
  if (!given->is_text()) rendering.wrong("expected a text as argument, got {}", type_of(*given));
  return given->text();
}

int64_t integer_or(const std::optional<Value>& given, int64_t otherwise, const Rendering& rendering) {
  if (!given || given->is<None>()) return otherwise;
  if (!given->is_integer()) rendering.wrong("expected a whole number as argument, got {}", type_of(*given));
  return given->integer();
}

bool flag_or(const std::optional<Value>& given, bool otherwise) { return given ? truth(*given) : otherwise; }

}  // namespace tycho::jinja
