// Low-rank adapters of linear layers: the model that a run starts from stays as it is, and two small matrices
// beside each layer are trained (Hu et al. 2021, arXiv:2106.09685).
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/fields.h"

namespace tycho {

struct LoraConfig {
  int64_t rank = 0;
  std::optional<double> alpha;
  double dropout = 0;
  bool rslora = false;
  std::vector<std::string> targets;

  template <class Visitor>
  void fields(Visitor& v) {
    v("rank", rank, "Rank of the adapters; 0: none, all of the model is trained.", in_range(0, 65536));
    v("alpha", alpha, "Adapters add alpha / rank times their product. Default: rank.", positive);
    v("dropout", dropout, "Share of an adapter's input that is dropped.", below(0, 1));
    v("rslora", rslora, "Divide alpha by the square root of the rank instead (rsLoRA, arXiv:2312.03732).");
    v("targets", targets,
      "Layers that get adapters: regular expressions for the last parts of their names, such as \"q_proj\" "
      "or "
      "\"mlp.up_proj\". Default: all linear layers of the blocks.");
  }

  bool is_used() const { return rank > 0; }
  /// Returns the factor of an adapter's product.
  double scale() const {
    const auto r = static_cast<double>(rank);
    return alpha.value_or(r) / (rslora ? std::sqrt(r) : r);
  }
};

}  // namespace tycho
