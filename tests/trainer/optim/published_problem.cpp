// Losses and gradients of the model by hand, in double precision.
#include "tests/trainer/optim/published_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/trainer/aten.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json_reader.h"

namespace tycho {
namespace {

Json read_published(const std::string& name) {
  const char* source = std::getenv("TYCHO_SOURCE_DIR");
  const std::string path =
      std::string(source == nullptr ? "." : source) + "/tests/golden/optim/published/" + name + ".json";
  return parse_json(read_file(path), path);
}

const Json& problem() {
  static const Json json = read_published("problem");
  return json;
}

Tensor tensor_of(const Json& numbers, const Shape& shape) {
  return at::tensor(numbers.get<std::vector<double>>(), at::TensorOptions().dtype(at::kDouble)).view(shape);
}

PublishedWeights read_weights(const Json& json) {
  PublishedWeights weights;
  for (const auto& [name, numbers] : json.items())
    weights[name] = tensor_of(numbers, problem()["shapes"][name].get<Shape>());
  return weights;
}

std::map<int64_t, PublishedWeights> read_steps(const Json& json) {
  std::map<int64_t, PublishedWeights> steps;
  for (const auto& [step, weights] : json.items()) steps[std::stoll(step)] = read_weights(weights);
  return steps;
}

/// Returns the schedule's factors, or those of an optimizer's own warm-up.
std::vector<double> factors_of(const Json& one) {
  if (one["scheduled"].get<bool>()) return problem()["factors"];
  const double warmup = one["arguments"].value("warmup_steps", 1.0);
  std::vector<double> factors;
  for (size_t i = 1; i <= one["losses"].size(); ++i)
    factors.push_back(std::min(1.0, static_cast<double>(i) / warmup));
  return factors;
}

struct LossAndGradients {
  double loss = 0;
  PublishedWeights gradients;
};

LossAndGradients backward(const PublishedWeights& w, const Json& batch) {
  const Tensor ids = at::tensor(batch["ids"].get<std::vector<int64_t>>());
  const int64_t rows = ids.numel();
  const Tensor &tall = w.at("tall"), &wide = w.at("wide"), &gain = w.at("gain"), &square = w.at("square");
  const Tensor x = w.at("embedding").index_select(0, ids), u = x.mm(tall.t()), h = u.mm(wide.t()),
               v = h * gain;
  const Tensor off = v.mm(square.t()) - tensor_of(batch["targets"], {rows, square.size(0)});
  const Tensor dy = off / static_cast<double>(rows), dv = dy.mm(square), dh = dv * gain, du = dh.mm(wide);
  LossAndGradients out{0.5 * (off * off).sum().item<double>() / static_cast<double>(rows), {}};
  out.gradients = {
      {"square", dy.t().mm(v)},
      {"gain", (dv * h).sum(0)},
      {"wide", dh.t().mm(u)},
      {"tall", du.t().mm(x)},
      {"embedding", at::zeros(w.at("embedding").sizes(), at::kDouble).index_add(0, ids, du.mm(tall))}};
  return out;
}

/// Calls body(name, flat) with the part of a flat buffer of each range that a parameter has.
template <class Body>
void for_params(const std::vector<OwnedRange>& ranges, const Body& body) {
  for (const OwnedRange& range : ranges)
    for (const Extent& extent : range.extents)
      if (problem()["shapes"].contains(extent.spec->name)) body(range, extent);
}

}  // namespace

std::vector<PublishedCase> published_cases(const std::string& name) {
  const Json file = read_published(name);
  std::vector<PublishedCase> cases;
  for (const Json& one : file["cases"])
    cases.push_back(
        {one["name"], one["arguments"], factors_of(one), one["losses"], read_steps(one["after"]),
         one.contains("evaluated") ? read_steps(one["evaluated"]) : std::map<int64_t, PublishedWeights>()});
  TYCHO_CHECK(!cases.empty() && !cases.front().losses.empty(),
              "[published] expected cases in {}.json, got none", name);
  return cases;
}

std::vector<UnitSpec> published_units() {
  const auto param = [](const std::string& name) {
    const Shape shape = problem()["shapes"][name].get<Shape>();
    return ParamSpec{.name = name, .shape = shape, .init = {}, .decay = shape.size() > 1};
  };
  UnitSpec embedding{.name = "embedding"}, block{.name = "block"}, head{.name = "head"};
  embedding.params = {param("embedding")};
  block.params = {param("gain"), param("square"), param("tall"), param("wide")};
  head.params = {{.name = "head.norm", .shape = {4}, .init = {}, .decay = false}};
  return {embedding, block, head};
}

PublishedWeights published_weights(const std::vector<OwnedRange>& ranges) {
  PublishedWeights weights;
  for_params(ranges, [&](const OwnedRange& range, const Extent& extent) {
    weights[extent.spec->name] = range.weights()
                                     .narrow(0, extent.begin, extent.size())
                                     .to(at::kCPU, at::kDouble)
                                     .view(extent.spec->shape);
  });
  return weights;
}

double distance_between(const PublishedWeights& weights, const PublishedWeights& expected) {
  double largest = 0;
  for (const auto& [name, numbers] : expected)
    largest = std::max(largest, (weights.at(name) - numbers).abs().max().item<double>());
  return largest;
}

PublishedDistance train_published(const PublishedCase& one, std::vector<OwnedRange>& ranges,
                                  Optimizer& optimizer, const std::function<void(int64_t)>& after_step) {
  const PublishedWeights first = read_weights(problem()["weights"]);
  for_params(ranges, [&](const OwnedRange& range, const Extent& extent) {
    range.weights().narrow(0, extent.begin, extent.size()).copy_(first.at(extent.spec->name).flatten());
  });
  for (OwnedRange& range : ranges) {
    range.refresh_from_master();
    range.grads.zero_();
  }
  PublishedDistance distance;
  for (size_t i = 0; i < one.losses.size(); ++i) {
    const LossAndGradients made = backward(published_weights(ranges), problem()["batches"][i]);
    distance.losses = std::max(distance.losses, std::abs(made.loss - one.losses[i]));
    for_params(ranges, [&](const OwnedRange& range, const Extent& extent) {
      range.grads.narrow(0, extent.begin, extent.size())
          .copy_(made.gradients.at(extent.spec->name).flatten());
    });
    const auto step = static_cast<int64_t>(i) + 1;
    optimizer.step(one.arguments["lr"].get<double>() * one.factors[i], step,
                   at::ones({1}, ranges.front().grads.options()));
    if (after_step) after_step(step);
    if (const auto expected = one.after.find(step); expected != one.after.end())
      distance.weights =
          std::max(distance.weights, distance_between(published_weights(ranges), expected->second));
  }
  return distance;
}

}  // namespace tycho
