// One program for evaluation, and one for training, which computes derivatives too.
#include "trainer/models/token_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>

#include <map>

#include "trainer/base/error.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/expression/run_program.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

struct TokenLoss::Programs {
  explicit Programs(const LossTerms& terms)
      : evaluation(loss_expression(terms, false)), training(loss_expression(terms, true)) {}
  Program evaluation, training;
};

namespace {

Tensor narrowed(const Tensor& tensor, int64_t begin, int64_t count) {
  return tensor.defined() ? tensor.narrow(0, begin, count) : tensor;
}

}  // namespace

LossTokens LossTokens::narrow(int64_t begin, int64_t count) const {
  return {narrowed(targets_N, begin, count), narrowed(weights_N, begin, count),
          narrowed(positions_N, begin, count)};
}

TokenLoss::TokenLoss(const LossTerms& terms)
    : reads_positions_(reads_input(terms, "position")),
      reads_weights_(reads_input(terms, "weight")),
      programs_(std::make_shared<const Programs>(terms)) {
  for (const auto& [name, term] : terms) terms_.push_back(name);
}

LossSlots TokenLoss::slots() const {
  static_assert(kStatisticsOfToken == kTokenStatistics + kLossStatistics);
  return {.losses = num_losses(), .statistics = programs_ == nullptr ? 0 : kStatisticsOfToken};
}

void TokenLoss::compute(const Tensor& statistics_SN, const LossTokens& tokens, Tensor& losses_RN,
                        Tensor& gradients_5N) const {
  TYCHO_CHECK(programs_ != nullptr, "[loss] expected tokens without weights: no data of the recipe has any");
  const int64_t N = statistics_SN.size(1);
  std::map<std::string, Tensor> memory = {{kCrossEntropyName, losses_RN.select(0, 0)}};
  for (size_t i = 0; i < terms_.size(); ++i)
    memory[term_output(terms_[i])] = losses_RN.select(0, static_cast<int64_t>(i) + 1);
  for (size_t i = 0; i < kNumLossStatistics; ++i) {
    memory[kLossInputs[i]] = statistics_SN.select(0, static_cast<int64_t>(i));
    if (gradients_5N.defined())
      memory[std::string("d_") + kLossInputs[i]] = gradients_5N.select(0, static_cast<int64_t>(i));
  }
  memory["weight"] = tokens.weights_N.defined() ? tokens.weights_N : at::ones({N}, statistics_SN.options());
  if (reads_positions_) memory["position"] = tokens.positions_N.to(at::kFloat);
  const Program& program = gradients_5N.defined() ? programs_->training : programs_->evaluation;
  std::vector<ProgramTensor> arrays;
  for (const ProgramArray& array : program.arrays()) {
    arrays.push_back({memory[array.name]});
    memory.erase(array.name);
  }
  run_program(program, {}, arrays);
  const std::vector<double> scalars = program.scalars({});
  for (auto& [name, tensor] : memory)  // outputs that are the same number for all tokens
    if (const auto number = program.scalar_output(name, scalars)) tensor.fill_(*number);
  losses_RN.masked_fill_(tokens.targets_N.eq(kIgnoredTarget), 0);
}

TokenLoss token_loss(const TrainConfig& config) {
  const LossTerms& terms = config.loss.terms();
  return terms.empty() && !has_weights(config) ? TokenLoss() : TokenLoss(terms);
}

}  // namespace tycho
