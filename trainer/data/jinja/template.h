// A Jinja template of a conversation, as tokenizer_config.json has them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/jinja/expression_evaluator.h"
#include "trainer/data/jinja/syntax.h"
#include "trainer/data/jinja/value.h"

namespace tycho::jinja {

/// Immutable; rendered by several threads at once. What chat templates use of Jinja 3.1, with the settings
/// and functions of transformers; what is outside of that is an Error with its line.
class Template {
 public:
  /// `place` names it in messages. Throws Error (kUnusable) for what is not supported, wrong or too large.
  Template(std::string_view source, std::string place);

  /// `names`: what the template can use, besides Jinja's functions. Throws Error (kUnusable) where the
  /// template does what is not supported, uses up its limits, or refuses the conversation.
  std::string render(const std::vector<std::pair<std::string, Value>>& names,
                     std::optional<Date> date = std::nullopt) const;

 private:
  std::string place_;
  std::vector<Statement> body_;
};

}  // namespace tycho::jinja
