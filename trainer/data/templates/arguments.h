// Arguments of filters, tests, methods and functions.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  /// Returns one value for each of `names`, in order, or nothing if it is not given. Throws Error for too
  /// many or unknown arguments, and for missing ones among the first `num_required`; `what` names the callee.
  std::vector<std::optional<Value>> bind(std::string_view what, std::initializer_list<const char*> names,
                                         size_t num_required, const Rendering& rendering) const;
};

/// Return the argument as text, whole number or flag; `otherwise` if it is not given or none. text_or and
/// integer_or throw Error for other types.
std::string text_or(const std::optional<Value>& given, std::string otherwise, const Rendering& rendering);
int64_t integer_or(const std::optional<Value>& given, int64_t otherwise, const Rendering& rendering);
bool flag_or(const std::optional<Value>& given, bool otherwise);

}  // namespace tycho::jinja
