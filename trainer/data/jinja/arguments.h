// Arguments of filters, tests, methods and functions.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/jinja/rendering.h"
#include "trainer/data/jinja/value.h"

namespace tycho::jinja {

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  /// One value for each of `names`, in order, or nothing where it is not given. Throws Error for arguments
  /// that are too many, not known, or among the first `num_required` and missing; `what` names the callee.
  std::vector<std::optional<Value>> bind(std::string_view what, std::initializer_list<const char*> names,
                                         size_t num_required, const Rendering& rendering) const;
};

/// What is given as text, or a whole number; `otherwise` when it is not given or none. Throw Error for other
/// types.
std::string text_or(const std::optional<Value>& given, std::string otherwise, const Rendering& rendering);
int64_t integer_or(const std::optional<Value>& given, int64_t otherwise, const Rendering& rendering);
bool flag_or(const std::optional<Value>& given, bool otherwise);

}  // namespace tycho::jinja
