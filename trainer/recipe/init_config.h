// What the matrices of a model begin with.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/defined_kind.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"

namespace tycho {

struct FamilyInitConfig {
  static constexpr const char* kKind = "family";
  static constexpr const char* kHelp = "What the model's family begins with; see its init and init_std.";

  template <class Visitor>
  void fields(Visitor&) {}
};

/// Matrices of one role in layers [first, last]; see layout/init_matrices.h.
struct InitRange {
  std::string role;
  int64_t first = 0, last = 0;
  bool operator==(const InitRange&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("role", role, "What the matrices are.", required);
    v("first", first, "First layer.", required);
    v("last", last, "Last layer.", required);
  }
};

/// A value, and the matrices that begin with it.
struct InitFormula {
  std::vector<InitRange> of;
  Json expression;
  bool operator==(const InitFormula&) const = default;

  template <class Visitor>
  void fields(Visitor& v) {
    v("of", of, "The matrices.", required);
    v("expression", expression, "The value of an element.", required);
  }
};

/// Initial values that the recipe defines.
struct DefinedInitConfig : DefinedKind {
  static constexpr const char* kKind = "defined";
  static constexpr const char* kHelp = "A function of drawn numbers: t.init.define.";
  static constexpr bool kOnlyBase = true;
  std::vector<InitFormula> formulas;
  FunctionRef code;

  template <class Visitor>
  void fields(Visitor& v) {
    v("formulas", formulas, "What the function computes, traced.");
    v("code", code, "The function in the recipe.");
  }
};

struct InitConfig : OneOf<FamilyInitConfig, DefinedInitConfig> {
  static constexpr const char* kNamespace = "init";
  const char* kind() const { return kind_name(value); }
};

}  // namespace tycho
