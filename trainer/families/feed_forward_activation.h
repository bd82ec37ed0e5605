// The activation of feed-forwards as a config has it.
#pragma once
#include <string>

#include "trainer/base/activation.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"

namespace tycho {

struct JsonPath;

/// A built-in activation by its name, or a function that the recipe defines (t.act.define). In JSON: the
/// name, or {"expression": ..., "code": {"at", "hash"}}.
struct FeedForwardActivation {
  Activation builtin = Activation::kSilu;  // irrelevant where an expression is defined
  Json expression = nullptr;  // of one input and one output of elements; null for a built-in activation
  FunctionRef code;

  FeedForwardActivation(Activation name) : builtin(name) {}
  bool is_defined() const { return !expression.is_null(); }
  bool operator==(const FeedForwardActivation&) const;
};

// Readers and writers of fields find these by the type.
void read_value(const JsonPath& place, const Rule& rule, FeedForwardActivation& out);
Json to_json(const FeedForwardActivation& activation);
template <class T>
Json describe_type(const Rule& rule);
template <>
Json describe_type<FeedForwardActivation>(const Rule& rule);

}  // namespace tycho
