// The update of one kind of parameter, compiled for each set of branches that a step can take.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trainer/expression/expression.h"
#include "trainer/expression/program.h"

namespace tycho {

/// Numbers of a step by name: "h.lr".
using StepNumbers = std::map<std::string, double>;

/// The three phases of an update (expression/update_phases.h); a program is null where it computes nothing.
struct UpdateForm {
  std::unique_ptr<const Program> before, after;
  Expression whole;
};

/// The input that multiplies gradients: one fp32 number on the device.
inline constexpr const char* kGradScale = "grad_scale";

class UpdateForms {
 public:
  /// `parts` are the names of the inputs and outputs that have a number for each element of the parameter.
  UpdateForms(const Expression& update, std::set<std::string> parts);

  const std::set<std::string>& parts() const { return parts_; }
  /// Returns the form for a step.
  const UpdateForm& form(const StepNumbers& numbers);
  /// Returns the outputs that are scalars.
  StepNumbers scalar_outputs(const StepNumbers& numbers) const;

 private:
  std::vector<double> scalars(const StepNumbers& numbers) const;

  Expression update_;  // with scaled gradients
  std::set<std::string> parts_;
  std::map<std::vector<bool>, UpdateForm> forms_;  // by the branches taken
};

/// Returns the value of an input. Throws Error (kRecipe) that lists the numbers there are.
double number_named(const StepNumbers& numbers, const std::string& name);

}  // namespace tycho
