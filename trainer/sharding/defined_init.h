// Initial values that a recipe defines, drawn and computed for the elements of parameters.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/expression/program.h"
#include "trainer/families/config.h"
#include "trainer/layout/param_spec.h"
#include "trainer/recipe/init_config.h"

namespace tycho {

/// The value of an element, as a recipe defines it. Immutable, so threads may share it.
class DrawnValue {
 public:
  /// Throws Error for an expression that is no value of an element.
  explicit DrawnValue(const Json& expression);

  /// Fills elements [begin, begin + count) of a tensor of this name, from numbers that depend on the seed,
  /// the name and the element.
  void draw(const std::string& name, uint64_t seed, int64_t begin, int64_t count, float* out) const;

 private:
  Program program_;
  std::vector<float> constants_;
  std::optional<float> number_;  // the same for all elements
};

/// The programs of a model's matrices. Immutable, so threads may share it.
class DefinedInit {
 public:
  /// Throws Error for expressions that are no values of an element, and (kRecipe) where a matrix has none.
  DefinedInit(const DefinedInitConfig& init, const ModelConfig& model);

  /// Fills elements [begin, begin + count) of a whole parameter as draw_init does. Returns false, and fills
  /// nothing, for parameters that begin as their family says: norms, biases, adapters.
  bool draw(const ParamSpec& spec, uint64_t seed, int64_t begin, int64_t count, float* out) const;

 private:
  std::vector<DrawnValue> values_;
  std::map<std::string, size_t, std::less<>> of_;  // index into values_ by the parameter's name
};

}  // namespace tycho
