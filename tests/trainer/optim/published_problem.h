// The tiny model of tests/golden/optim/published/: an optimizer trains it, and is compared with published
// code.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/optim/optimizer.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Weights by name, in double precision.
using PublishedWeights = std::map<std::string, Tensor>;

/// One trajectory of published code.
struct PublishedCase {
  std::string name;
  Json arguments;               // hyperparameters by the names of the published code
  std::vector<double> factors;  // step i runs at lr x factor i
  std::vector<double> losses;
  std::map<int64_t, PublishedWeights> after, evaluated;  // by step
};

/// Returns the cases of NAME.json.
std::vector<PublishedCase> published_cases(const std::string& name);

/// Returns the units of the model: the embedding, a block with three matrices and the vector `gain`, a head
/// that the loss does not use.
std::vector<UnitSpec> published_units();

/// Returns the model's weights among the masters of whole units.
PublishedWeights published_weights(const std::vector<OwnedRange>& ranges);

struct PublishedDistance {
  double weights = 0, losses = 0;  // largest ones
};
/// Returns the largest distance between weights, for the names in `expected`.
double distance_between(const PublishedWeights& weights, const PublishedWeights& expected);

/// Trains the model from its first weights, and compares it with a case: losses before each step, and
/// weights after the steps that the case has. `after_step` is called with each step, from 1, if given.
PublishedDistance train_published(const PublishedCase& one, std::vector<OwnedRange>& ranges,
                                  Optimizer& optimizer,
                                  const std::function<void(int64_t step)>& after_step = {});

}  // namespace tycho
