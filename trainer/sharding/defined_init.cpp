// Tiles of drawn numbers, which a program makes values of.
#include "trainer/sharding/defined_init.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/expression/init_expression.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/layout/init_matrices.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

constexpr int64_t kTile = 1024;

bool is_in_range(const InitMatrix& matrix, const InitRange& range) {
  return matrix.role == range.role && range.first <= matrix.layer && matrix.layer <= range.last;
}

/// Draws what an input is called after. Uniform numbers have a stream of their own, so that they do not
/// depend on the normal ones of the same element.
void draw_input(std::string_view input, const std::string& name, uint64_t seed, int64_t begin, int64_t count,
                float* out) {
  if (input == "uniform")
    return draw_numbers({Init::Kind::kUnit}, stream_key(seed, name + " uniform"), begin, count, out);
  const Init::Kind kind = input == "normal" ? Init::Kind::kNormal : Init::Kind::kCutNormal;
  draw_numbers({kind, 1}, stream_key(seed, name), begin, count, out);
}

}  // namespace

DrawnValue::DrawnValue(const Json& expression) : program_(init_expression(expression)) {
  const std::vector<double> scalars = program_.scalars({});
  constants_ = program_.constants(scalars);
  if (const std::optional<double> number = program_.scalar_output(kInitOutput, scalars))
    number_ = static_cast<float>(*number);
}

void DrawnValue::draw(const std::string& name, uint64_t seed, int64_t begin, int64_t count,
                      float* out) const {
  if (number_) return static_cast<void>(std::fill_n(out, count, *number_));
  const std::vector<ProgramArray>& arrays = program_.arrays();
  std::vector<float> drawn(arrays.size() * kTile);
  for (int64_t done = 0; done < count; done += kTile) {
    const int64_t size = std::min(kTile, count - done);
    std::vector<ProgramMemory> memory(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      memory[i].read = arrays[i].read, memory[i].written = arrays[i].written;
      float* numbers = drawn.data() + i * kTile;
      memory[i].data = arrays[i].written ? out + done : numbers;
      if (arrays[i].read) draw_input(arrays[i].name, name, seed, begin + done, size, numbers);
    }
    cpu_kernels().run_program({1, size}, program_.tiles(constants_), memory.data(), nullptr);
  }
}

DefinedInit::DefinedInit(const DefinedInitConfig& init, const ModelConfig& model) {
  for (const InitFormula& formula : init.formulas) values_.emplace_back(formula.expression);
  std::vector<std::string> without;
  for (const InitMatrix& matrix : init_matrices(model)) {
    const auto is_of = [&](const InitFormula& formula) {
      return std::any_of(formula.of.begin(), formula.of.end(),
                         [&](const InitRange& range) { return is_in_range(matrix, range); });
    };
    const auto found = std::find_if(init.formulas.begin(), init.formulas.end(), is_of);
    if (found == init.formulas.end()) without.push_back(matrix.name);
    of_[matrix.name] = static_cast<size_t>(found - init.formulas.begin());
  }
  if (!without.empty())
    fail(ExitCode::kRecipe,
         "[init] expected a value for every matrix, got none for {}; t.init.define ({}) was called for "
         "another model",
         fmt::join(without, ", "), init.code.at);
}

bool DefinedInit::draw(const ParamSpec& spec, uint64_t seed, int64_t begin, int64_t count, float* out) const {
  const auto found = of_.find(spec.name);
  if (found == of_.end()) return false;
  values_[found->second].draw(spec.name, seed, begin, count, out);
  return true;
}

}  // namespace tycho
