// The feed-forward of a block, gated or plain.
#pragma once
#include <memory>
#include <optional>

#include "trainer/families/decoder_spec.h"
#include "trainer/families/feed_forward_activation.h"
#include "trainer/kernels/expression/defined_activation.h"
#include "trainer/kernels/fp8.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/fp8_linear.h"
#include "trainer/models/linear.h"
#include "trainer/models/norm.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/residual.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

// N tokens, S those of this rank, D width, F hidden.
/// y = down( f(gate(x)) * up(x) ) + residual, or down( f(up(x)) ) + residual (Shazeer 2020,
/// arXiv:2002.05202). forward keeps the output of the first matrix, before a bias that is added with the
/// activation; backward computes the rest again, which is cheaper than keeping it.
class FeedForward {
 public:
  FeedForward(const DecoderSpec& spec, int64_t block, const ParallelRegion& region);
  void forward(const Views& p, const BranchInput& input, const Tensor& residual_SD, BlockActivations act,
               Tensor& y_SD) const;
  /// Returns the cast of the input that the kernel which computes it should make, if any.
  std::optional<RowCast> cast_of_input(const Views& p, const Tensor& x_SD, BlockActivations act) const {
    return input_cast(fp8_linear_of(at_, at_.up_weight, region_, p, act), x_SD);
  }
  /// Fills slot kUp as forward does, and with `whole` the slot of the branch's output, and does nothing else.
  void recompute(const Views& p, const BranchInput& input, BlockActivations act, bool whole) const;
  /// Computes dx_SD from dy_SD; may overwrite slot kUp. Gradients are written to g, or added.
  void backward(const Views& p, const Tensor& x_SD, BlockActivations act, const Tensor& dy_SD, Views& g,
                bool add, Tensor& dx_SD) const;
  /// Computes y for generation, which keeps nothing.
  Tensor apply(const Views& p, const Tensor& x_ND, const Tensor& residual_ND) const;

 private:
  /// True if the bias is added together with the activation, in one pass: built-in ones without a gate.
  bool fuses_bias() const { return !gated_ && !defined_ && at_.up_bias >= 0; }
  /// True if the library of a GPU computes the tanh GELU along with the products around it. Slot kUp then
  /// includes the bias.
  bool fuses_gelu(const Views& p, BlockActivations act) const;
  GeluLayer gelu_layer(const Views& p, int weight, int bias) const {
    return {p[static_cast<size_t>(weight)], in_out_, view(p, bias)};
  }
  /// `act` is the activations of a pass; none for generation.
  template <class... Act>
  LinearParams up(const Views& p, Act... act) const {
    return {p[static_cast<size_t>(at_.up_weight)], view(p, fuses_bias() ? -1 : at_.up_bias), in_out_,
            layer_adapters(at_, at_.up_weight, region_.context(), p, act...),
            fp8_linear_of(at_, at_.up_weight, region_, p, act...)};
  }
  template <class... Act>
  LinearParams down(const Views& p, Act... act) const {
    return {p[static_cast<size_t>(at_.down_weight)], view(p, at_.down_bias), in_out_,
            layer_adapters(at_, at_.down_weight, region_.context(), p, act...),
            fp8_linear_of(at_, at_.down_weight, region_, p, act...)};
  }
  /// Fills slot kUp, with the product that forward has computed; with a fused GELU also slot kHidden.
  void forward_up(const Views& p, const BranchInput& input, BlockActivations act) const;
  /// Computes slot kHidden from slot kUp for that layer, or what the layer needs of it. Returns the fp8 form
  /// where the activation makes it.
  std::optional<Fp8Matrix> activate_for(const LinearParams& down, const Views& p, BlockActivations act) const;
  void activate(const Views& p, const Tensor& up, Tensor& hidden_NF) const;
  void activate_backward(const Views& p, Tensor& up, Tensor& d_hidden_NF, Tensor& hidden_NF, Views& g,
                         bool add) const;

  ParallelRegion region_;
  BlockParams at_;
  FeedForwardActivation activation_;
  std::shared_ptr<const DefinedActivation> defined_;  // null for built-in ones
  bool gated_, in_out_;
  int64_t ffn_width_;
  BranchEnd end_;
};

}  // namespace tycho
