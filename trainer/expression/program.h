// An elementwise expression, prepared for execution.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/expression/expression.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/tile_code.h"
#include "trainer/expression/tile_compiler.h"

namespace tycho {

/// Scalars are computed on the host for each run, elements by a kernel (kernels/expression/run_program.h).
/// Immutable, so threads may share it.
class Program {
 public:
  /// Simplifies and compiles. Throws Error (kRecipe) as check_expression and compile_tiles.
  explicit Program(const Expression& expression);

  const Expression& expression() const { return expression_; }
  /// Memory that a run needs: element inputs in their order, then outputs of other names.
  const std::vector<ProgramArray>& arrays() const { return tiles_.arrays; }
  const std::vector<std::string>& scalar_inputs() const { return scalar_inputs_; }

  /// Returns the value of every node that is a scalar, in double, by node. `inputs` are in the order of
  /// scalar_inputs(). Booleans are 0 and 1.
  std::vector<double> scalars(const std::vector<double>& inputs) const;
  /// Returns the constants of a run, which are scalars rounded once.
  std::vector<float> constants(const std::vector<double>& scalars) const;
  /// Returns the value of an output that is a scalar and no array, or nullopt.
  std::optional<double> scalar_output(std::string_view name, const std::vector<double>& scalars) const;

  /// Returns the program with the constants, which must live as long as the result.
  TileProgram tiles(const std::vector<float>& constants) const;

 private:
  Expression expression_;
  std::vector<NodeType> types_;
  CompiledTiles tiles_;
  std::vector<std::string> scalar_inputs_;
};

}  // namespace tycho
