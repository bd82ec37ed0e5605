// The loss that training minimises.
#pragma once
#include <string>

#include "trainer/base/defined_kind.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/expression/loss_expression.h"

namespace tycho {

struct CrossEntropyConfig {
  static constexpr const char* kKind = "cross_entropy";
  static constexpr const char* kHelp = "Minus the log-probability of each target.";

  template <class Visitor>
  void fields(Visitor&) {}
};

/// A loss that the recipe defines.
struct DefinedLossConfig : DefinedKind {
  static constexpr const char* kKind = "defined";
  static constexpr const char* kHelp = "A function of what the classifier knows of a token: t.loss.define.";
  static constexpr bool kOnlyBase = true;
  LossTerms terms;
  FunctionRef code;

  template <class Visitor>
  void fields(Visitor& v) {
    v("terms", terms, "Expressions whose sum is minimised, by the name under which each is recorded.");
    v("code", code, "Where the recipe defines it.");
  }
};

struct LossConfig : OneOf<CrossEntropyConfig, DefinedLossConfig> {
  static constexpr const char* kNamespace = "loss";
  const char* kind() const { return kind_name(value); }

  /// Returns the terms of a loss that the recipe defines; none for the cross-entropy.
  const LossTerms& terms() const {
    static const LossTerms none;
    const auto* defined = std::get_if<DefinedLossConfig>(&value);
    return defined == nullptr ? none : defined->terms;
  }
};

}  // namespace tycho
