// A Jinja template for conversations, as in tokenizer_config.json.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/templates/expression_evaluator.h"
#include "trainer/data/templates/syntax.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

/// A template in the subset of Jinja 3.1 that chat templates use, with the settings and functions of
/// transformers. Anything else is an Error with its line. Immutable; rendered by several threads at once.
class Template {
 public:
  /// `place` names the template in messages. Throws Error (kUnusable) for syntax that is not supported, wrong
  /// or too large.
  Template(std::string_view source, std::string place);

  /// Renders the template. `names`: values that it can use, in addition to Jinja's functions. Throws Error
  /// (kUnusable) when the template uses something unsupported, exceeds its limits, or refuses the
  /// conversation.
  std::string render(const std::vector<std::pair<std::string, Value>>& names,
                     std::optional<Date> date = std::nullopt) const;

 private:
  std::string place_;
  std::vector<Statement> body_;
};

}  // namespace tycho::jinja
