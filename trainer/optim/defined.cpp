// Optimizers that recipes define: elementwise programs over parts, and operations on whole matrices.
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "trainer/base/error.h"
#include "trainer/expression/expression_json.h"
#include "trainer/kernels/expression/run_program.h"
#include "trainer/optim/kinds.h"
#include "trainer/optim/matrix_evaluator.h"
#include "trainer/optim/row_blocks.h"
#include "trainer/optim/update_forms.h"

namespace tycho {
namespace {

/// Memory by the names of an expression.
using Arrays = std::map<std::string, Tensor>;

/// State and forms that all parameters of one kind share: an entry of DefinedOptimizerConfig::updates.
struct Kind {
  std::vector<StateSpec> states;
  UpdateForms forms;
  std::unique_ptr<const Program> eval_weights;  // null where evaluations use the trained weights
};

/// The output of eval_weights: never in the place of the weights.
constexpr const char* kEvaluated = "evaluated";

std::unique_ptr<const Program> read_eval_weights(const Json& update) {
  if (!update.contains("eval_weights")) return nullptr;
  Expression expression = read_expression(update.at("eval_weights"));
  expression.outputs.at(0).name = kEvaluated;
  return std::make_unique<const Program>(expression);
}

Kind read_kind(const Json& update, std::vector<StateSpec> states) {
  std::set<std::string> parts = {"p", "g"};
  for (const StateSpec& state : states)
    if (state.is_like_parameter()) parts.insert("s." + state.name);
  return {std::move(states), UpdateForms(read_expression(update.at("expression")), std::move(parts)),
          read_eval_weights(update)};
}

/// Adds h.NAME for a number, h.NAME.1, h.NAME.2, ... for a list of numbers.
void add_number(const std::string& name, const Json& value, StepNumbers& numbers) {
  if (value.is_number()) numbers[name] = value.get<double>();
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      add_number(name + "." + std::to_string(i + 1), value[i], numbers);
}

/// Returns the place of a segment's weights in buffers that have all trained parameters.
Tensor average_of(const Segment& segment, const std::vector<StateBuffer>& average) {
  for (const StateBuffer& buffer : average)
    for (const Extent& e : buffer.extents)
      if (e.spec == segment.extent.spec && e.first == segment.extent.first)
        return buffer.flat.narrow(0, e.begin, segment.grads.numel());
  fail(ExitCode::kFailure, "[optim] {} has no place in the average", segment.extent.spec->name);
}

Tensor flat_weights(const WeightTensors& weights) {
  return weights.master.defined() ? weights.master : weights.params.to(at::kFloat);
}

/// One update under way: of a segment, or of a matrix of which this rank has a part or nothing.
struct Work {
  Segment* segment = nullptr;
  MatrixShape shape;  // of a matrix that is updated as a whole
  Kind* kind = nullptr;
  StepNumbers numbers;
  const UpdateForm* form = nullptr;
  Arrays parts;   // flat, of this rank
  Arrays wholes;  // of this rank's matrices
};

class Defined final : public Optimizer {
 public:
  Defined(DefinedOptimizerConfig config, Segments segments)
      : config_(std::move(config)), segments_(std::move(segments)), own_(segments_.matrices.size()) {
    for (Segment& s : segments_.list)
      if (s.matrix >= 0) own_[static_cast<size_t>(s.matrix)] = &s;
    for (const auto& [name, value] : config_.values.items()) add_number("h." + name, value, numbers_);
  }

  void step(double lr, int64_t step, const Tensor& grad_scale_1) override {
    numbers_["h.step"] = static_cast<double>(step);
    grad_scale_ = grad_scale_1;
    for (Segment& s : segments_.list) {
      s.weights.step = static_cast<uint64_t>(step);
      if (s.matrix >= 0) continue;
      Work work = begin(kind_of(s.extent.spec->whole_shape(), s.rule), s.rule, lr, &s);
      finish(work);
    }
    for (size_t first = 0, end; first < segments_.matrices.size(); first = end) {
      end = first;
      while (end < segments_.matrices.size() &&
             segments_.matrices[end].unit == segments_.matrices[first].unit)
        ++end;
      update_unit(first, end, lr);
    }
  }
  std::vector<StateBuffer>& state() override { return segments_.state; }

  void write_eval_weights(int64_t step, const std::vector<StateBuffer>& average) override {
    numbers_["h.step"] = static_cast<double>(step);
    for (Segment& s : segments_.list) {
      Work work = begin(kind_of(s.extent.spec->whole_shape(), s.rule), s.rule, /*lr=*/0, &s);
      work.parts[kEvaluated] = average_of(s, average);
      run(*work.kind->eval_weights, work);
    }
  }

 private:
  Kind& kind_of(const Shape& shape, const ParamRule& rule) {
    const Json* const update = &config_.update_of(shape, rule.hidden_matrix);
    const auto found = kinds_.find(update);
    if (found != kinds_.end()) return found->second;
    return kinds_.emplace(update, read_kind(*update, config_.state_specs(shape, rule.hidden_matrix)))
        .first->second;
  }

  Work begin(Kind& kind, const ParamRule& rule, double lr, Segment* segment) {
    Work work{.segment = segment,
              .shape = {},
              .kind = &kind,
              .numbers = numbers_,
              .form = nullptr,
              .parts = {},
              .wholes = {}};
    work.numbers["h.lr"] = lr * rule.lr_scale;
    work.numbers["h.weight_decay"] = rule.weight_decay;
    if (config_.betas())
      for (size_t i = 0; i < 2; ++i) work.numbers[fmt::format("h.betas.{}", i + 1)] = rule.betas[i];
    if (segment == nullptr) {
      for (const StateSpec& state : kind.states) work.numbers["s." + state.name] = 0;  // decides no branch
      return work;
    }
    work.parts["g"] = segment->grads;
    for (size_t i = 0; i < kind.states.size(); ++i) {
      const std::string name = "s." + kind.states[i].name;
      if (kind.states[i].scalar)
        work.numbers[name] = segment->state[i].data_ptr<float>()[0];
      else if (kind.states[i].is_like_parameter())
        work.parts[name] = segment->state[i];
      else
        work.wholes[name] = segment->state[i];
    }
    return work;
  }

  /// Runs a phase over this rank's part. Makes memory for values that it returns for later phases.
  void run(const Program& program, Work& work) {
    std::vector<ProgramTensor> arrays;
    std::vector<double> scalars;
    for (const ProgramArray& array : program.arrays()) {
      if (array.name == "p") {
        arrays.push_back({{}, &work.segment->weights});
        continue;
      }
      Tensor& part = array.name == kGradScale ? grad_scale_ : work.parts[array.name];
      if (!part.defined()) part = at::empty_like(work.segment->grads);
      arrays.push_back({part});
    }
    for (const std::string& name : program.scalar_inputs())
      scalars.push_back(number_named(work.numbers, name));
    run_program(program, scalars, arrays);
  }

  void finish(Work& work) {
    work.form = &work.kind->forms.form(work.numbers);
    run_after(work);
  }

  void run_after(Work& work) {
    if (work.form->after != nullptr) run(*work.form->after, work);
    const StepNumbers scalars = work.kind->forms.scalar_outputs(work.numbers);
    for (size_t i = 0; i < work.kind->states.size(); ++i)
      if (work.kind->states[i].scalar)
        if (const auto value = scalars.find("s." + work.kind->states[i].name); value != scalars.end())
          work.segment->state[i].fill_(value->second);
  }

  /// Brings the parts of one value together. Collective when ranks share matrices.
  Tensor gathered(const Work& work, const std::string& name) const {
    const auto part = [&] { return name == "p" ? flat_weights(work.segment->weights) : work.parts.at(name); };
    if (segments_.owners == nullptr) return part().view({work.shape.rows, work.shape.columns});
    Tensor whole = at::zeros({work.shape.rows, work.shape.columns},
                             at::TensorOptions(segments_.device).dtype(at::kFloat));
    if (work.segment != nullptr) copy_to_whole(work.segment->extent, part(), whole);
    segments_.owners->all_reduce(whole);
    return whole;
  }

  /// Gathers the matrices of a unit. Each rank computes those that it has a part of, while others compute
  /// theirs.
  void update_unit(size_t first, size_t end, double lr) {
    std::vector<Work> list;
    for (size_t i = first; i < end; ++i) {
      const WholeMatrix& matrix = segments_.matrices[i];
      Work& work = list.emplace_back(begin(kind_of(matrix.shape, matrix.rule), matrix.rule, lr, own_[i]));
      const bool is_vector = matrix.shape.size() < 2;
      work.shape = {is_vector ? 1 : matrix.shape[0], numel(matrix.shape) / (is_vector ? 1 : matrix.shape[0])};
      work.form = &work.kind->forms.form(work.numbers);
      if (work.segment != nullptr && work.form->before != nullptr) run(*work.form->before, work);
      for (const ExpressionInput& input : work.form->whole.inputs) {
        const bool is_part = work.kind->forms.parts().contains(input.name) || input.name.starts_with("v.");
        if (!is_part) continue;
        const Tensor whole = gathered(work, input.name);
        if (work.segment != nullptr) work.wholes[input.name] = whole;
      }
    }
    for (Work& work : list)
      if (work.segment != nullptr) update_matrix(work);
  }

  void update_matrix(Work& work) {
    const Expression& whole = work.form->whole;
    MatrixValues inputs;
    for (const ExpressionInput& input : whole.inputs) {
      inputs.matrices.push_back(input.scalar               ? Tensor()
                                : input.name == kGradScale ? grad_scale_.view({1, 1})
                                                           : work.wholes.at(input.name));
      inputs.scalars.push_back(input.scalar ? number_named(work.numbers, input.name) : 0);
    }
    const std::vector<Tensor> outputs = evaluate_matrices(whole, inputs, segments_.device);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = whole.outputs[i].name;
      if (name.starts_with("v."))
        work.parts[name] = part_of(work, outputs[i]);
      else
        work.wholes.at(name).copy_(outputs[i]);
    }
    run_after(work);
  }

  /// Returns this rank's part of a value that broadcasts to the matrix; one number stays one.
  Tensor part_of(const Work& work, const Tensor& value) const {
    if (value.numel() == 1) return value.flatten();
    const Tensor whole = value.expand({work.shape.rows, work.shape.columns});
    if (segments_.owners == nullptr) return whole.contiguous().flatten();
    Tensor part = at::empty_like(work.segment->grads);
    copy_from_whole(work.segment->extent, whole, part);
    return part;
  }

  DefinedOptimizerConfig config_;
  Segments segments_;
  std::vector<Segment*> own_;  // by matrix; null where this rank has no part
  std::map<const Json*, Kind> kinds_;
  StepNumbers numbers_;  // those that are not a parameter's own
  Tensor grad_scale_;
};

}  // namespace

std::unique_ptr<Optimizer> make_kind(const DefinedOptimizerConfig& config, Segments segments) {
  return std::make_unique<Defined>(config, std::move(segments));
}

}  // namespace tycho
