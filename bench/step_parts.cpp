// Listens to the ranges that the fused ops record for profilers.
#include "bench/step_parts.h"

#include <ATen/record_function.h>

#include <chrono>

namespace tycho {
namespace {

struct Listened {
  std::map<std::string, double> seconds;
  int depth = 0;
};

Listened& listened() {
  static Listened one;
  return one;
}

struct Began final : at::ObserverContext {
  std::chrono::steady_clock::time_point at;
  std::string_view part;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& range) {
  const std::string_view part = part_of(range.name());
  if (part.empty()) return nullptr;
  auto began = std::make_unique<Began>();
  began->part = listened().depth++ == 0 ? part : "";
  began->at = std::chrono::steady_clock::now();
  return began;
}

void end(const at::RecordFunction&, at::ObserverContext* context) {
  const auto* began = static_cast<const Began*>(context);
  if (!began) return;
  --listened().depth;
  if (began->part.empty()) return;
  listened().seconds[std::string(began->part)] +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began->at).count();
}

}  // namespace

std::string_view part_of(std::string_view range) {
  constexpr std::string_view kOps = "tycho::";
  if (range == "aten::mm" || range == "aten::addmm") return "products";
  if (!range.starts_with(kOps)) return "";
  const std::string_view op = range.substr(kOps.size());
  const auto has = [&](std::string_view word) { return op.find(word) != std::string_view::npos; };
  if (has("matmul")) return "products";
  if (has("attention") || has("rope") || has("temperature")) return "attention";
  if (has("cross_entropy")) return "classifier";
  if (has("norm")) return "norms";
  if (has("activation")) return "activations";
  if (has("_step") || has("add_update") || has("sum_of_squares") || has("muon")) return "optimizer";
  return "other ops";
}

StepParts::StepParts()
    : handle_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                         .scopes({at::RecordScope::USER_SCOPE, at::RecordScope::FUNCTION}))) {
  clear();
}

StepParts::~StepParts() { at::removeCallback(handle_); }

const std::map<std::string, double>& StepParts::seconds() const { return listened().seconds; }

void StepParts::clear() { listened() = {}; }

}  // namespace tycho
