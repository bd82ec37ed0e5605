// The table of such names.
#include "trainer/base/absent.h"

namespace tycho {
namespace {

enum class Where { kFront, kInside, kBack };
struct AbsentName {
  Where where;
  std::string_view part;
  const char* feature;
};

constexpr const char* kExperts = "mixtures of experts are not supported";
constexpr AbsentName kAbsent[] = {
    {Where::kFront, "moe_", kExperts},     // moe_num_experts, moe_top_k, moe_loss_weight
    {Where::kInside, "expert", kExperts},  // num_experts, num_local_experts, num_experts_per_tok
    {Where::kBack, "_moe", kExperts},      // mb_moe
    {Where::kBack, "dmoe", kExperts},      // torch_dmoe, mb_dmoe
    {Where::kInside, "router", kExperts},  // router_aux_loss_coef
};

}  // namespace

std::string absent_feature(std::string_view name) {
  for (const auto& [where, part, feature] : kAbsent) {
    const size_t at = name.find(part);
    const bool holds = where == Where::kFront  ? at == 0
                       : where == Where::kBack ? name.ends_with(part)
                                               : at != std::string_view::npos;
    if (holds) return feature;
  }
  return "";
}

}  // namespace tycho
