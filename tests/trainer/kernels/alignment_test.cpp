// Kernels take tensors that begin anywhere: each of an op's tensors in turn lies one element beside a
// multiple of 16 bytes, and the results stay.
#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

constexpr int64_t kRows = 5, kDim = 16, kVocab = 7;  // rows are whole packs of either dtype

class AlignmentTest : public KernelTest {
 protected:
  using Tensors = std::vector<Tensor>;

  void SetUp() override {
    KernelTest::SetUp();
    if (table_) stream_ = stream_of(empty({1}));
  }

  /// The same numbers, one element beside a multiple of 16 bytes.
  static Tensor shifted(const Tensor& tensor) {
    Tensor moved = at::empty({tensor.numel() + 1}, tensor.options()).narrow(0, 1, tensor.numel());
    moved = moved.view(tensor.sizes());
    moved.copy_(tensor);
    return moved;
  }

  /// Calls op with copies of the tensors, all aligned and then with each of them shifted.
  void expect_same(const char* name, const Tensors& tensors, const std::function<void(Tensors&)>& op) {
    const auto run = [&](int64_t shift) {
      Tensors copies;
      for (int64_t i = 0; i < static_cast<int64_t>(tensors.size()); ++i)
        copies.push_back(i == shift ? shifted(tensors[i]) : tensors[i].clone());
      op(copies);
      return copies;
    };
    const Tensors wanted = run(-1);
    for (int64_t shift = 0; shift < static_cast<int64_t>(tensors.size()); ++shift) {
      SCOPED_TRACE(testing::Message() << name << " with tensor " << shift << " beside its place");
      const Tensors got = run(shift);
      for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], wanted[i], 4);
    }
  }
  Tensor rows(int64_t dim = kDim) { return normal({kRows, dim}); }
  static void* raw(Tensor& tensor) { return tensor.mutable_data_ptr(); }
  static float* fp32(Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

  Stream stream_ = nullptr;
  const RowsShape shape_{kRows, kDim};
  static constexpr Activation kCurve = Activation::kGelu;
};

TEST_P(AlignmentTest, OfElements) {
  const int64_t n = kRows * kDim;
  expect_same("activation", {rows(), rows()},
              [&](Tensors& t) { table_->activation(n, dtype_, kCurve, raw(t[0]), raw(t[1]), stream_); });
  expect_same("activation_backward", {rows(), rows(), rows(), rows()}, [&](Tensors& t) {
    table_->activation_backward(n, dtype_, kCurve, raw(t[0]), raw(t[1]), raw(t[2]), raw(t[3]), stream_);
  });
  expect_same("clamp", {rows(), rows()},
              [&](Tensors& t) { table_->clamp(n, dtype_, 0.5f, raw(t[0]), raw(t[1]), stream_); });
  expect_same("clamp_backward", {rows(), rows(), rows()}, [&](Tensors& t) {
    table_->clamp_backward(n, dtype_, 0.5f, raw(t[0]), raw(t[1]), raw(t[2]), stream_);
  });
  expect_same("cast", {rows(), normal_fp32({n})}, [&](Tensors& t) {
    table_->cast(n, dtype_, raw(t[0]), Dtype::kFp32, raw(t[1]), stream_);
    table_->cast(n, Dtype::kFp32, raw(t[1]), dtype_, raw(t[0]), stream_);
  });
  expect_same("add_to_fp32", {rows(), normal_fp32({n})},
              [&](Tensors& t) { table_->add_to_fp32(n, dtype_, raw(t[0]), fp32(t[1]), stream_); });
}

TEST_P(AlignmentTest, OfRowsWithABias) {
  const auto floats = [&](int64_t n) { return normal_fp32({n}); };
  expect_same("add_bias", {normal({kDim}), rows(), rows()}, [&](Tensors& t) {
    table_->add_bias(shape_, dtype_, raw(t[0]), raw(t[1]), raw(t[2]), stream_);
  });
  expect_same("bias_gradient", {rows(), floats(kDim)}, [&](Tensors& t) {
    Tensor workspace = empty_fp32({table_->bias_gradient_workspace(shape_)});
    table_->bias_gradient(shape_, dtype_, raw(t[0]), fp32(t[1]), true, fp32(workspace), stream_);
  });
  expect_same("bias_activation", {normal({kDim}), rows(), rows()}, [&](Tensors& t) {
    table_->bias_activation(shape_, dtype_, kCurve, raw(t[0]), raw(t[1]), raw(t[2]), stream_);
  });
  expect_same("bias_activation_backward", {normal({kDim}), rows(), rows(), rows(), rows(), floats(kDim)},
              [&](Tensors& t) {
                Tensor workspace = empty_fp32({table_->bias_activation_backward_workspace(shape_)});
                table_->bias_activation_backward(shape_, dtype_, kCurve, raw(t[0]), raw(t[1]), raw(t[2]),
                                                 raw(t[3]), raw(t[4]), fp32(t[5]), true, fp32(workspace),
                                                 stream_);
              });
  expect_same("gated_activation", {rows(2 * kDim), rows()}, [&](Tensors& t) {
    table_->gated_activation(shape_, dtype_, kCurve, raw(t[0]), raw(t[1]), stream_);
  });
  expect_same("gated_activation_backward", {rows(2 * kDim), rows(), rows(2 * kDim), rows()}, [&](Tensors& t) {
    table_->gated_activation_backward(shape_, dtype_, kCurve, raw(t[0]), raw(t[1]), raw(t[2]), raw(t[3]),
                                      stream_);
  });
  expect_same("dropout", {rows(), rows(), rows()}, [&](Tensors& t) {
    table_->dropout(shape_, dtype_, {0.3, 7, 0}, raw(t[0]), raw(t[1]), raw(t[2]), stream_);
  });
}

TEST_P(AlignmentTest, OfNorms) {
  const NormShape shape{kRows, 1, kDim, kDim, kDim, kDim};
  const auto stats = [&] { return normal_fp32({kRows}); };
  const auto sums = [&] { return normal_fp32({kDim}); };
  expect_same("rms_norm", {rows(), normal({kDim}), rows(), stats()}, [&](Tensors& t) {
    table_->rms_norm(shape, dtype_, raw(t[0]), raw(t[1]), 1, 1e-5f, raw(t[2]), fp32(t[3]), {}, {}, stream_);
  });
  expect_same("rms_norm after an addition", {rows(), normal({kDim}), rows(), stats(), rows(), rows()},
              [&](Tensors& t) {
                table_->rms_norm(shape, dtype_, raw(t[0]), raw(t[1]), 1, 1e-5f, raw(t[2]), fp32(t[3]),
                                 {.before = raw(t[4]), .sum = raw(t[5])}, {}, stream_);
              });
  expect_same("rms_norm before an addition", {rows(), normal({kDim}), rows(), stats(), rows()},
              [&](Tensors& t) {
                table_->rms_norm(shape, dtype_, raw(t[0]), raw(t[1]), 1, 1e-5f, raw(t[2]), fp32(t[3]),
                                 {.after = raw(t[4])}, {}, stream_);
              });
  expect_same("rms_norm_backward", {rows(), normal({kDim}), stats(), rows(), rows(), sums()},
              [&](Tensors& t) {
                Tensor workspace = empty_fp32({table_->rms_norm_backward_workspace(shape)});
                table_->rms_norm_backward(shape, dtype_, raw(t[0]), raw(t[1]), 1, fp32(t[2]), raw(t[3]),
                                          raw(t[4]), true, fp32(t[5]), true, fp32(workspace), stream_);
              });
  expect_same("layer_norm", {rows(), normal({kDim}), normal({kDim}), rows(), stats(), stats()},
              [&](Tensors& t) {
                table_->layer_norm(shape, dtype_, raw(t[0]), raw(t[1]), raw(t[2]), 1e-5f, raw(t[3]),
                                   fp32(t[4]), fp32(t[5]), {}, {}, stream_);
              });
  expect_same("layer_norm_backward",
              {rows(), normal({kDim}), stats(), stats(), rows(), rows(), sums(), sums()}, [&](Tensors& t) {
                Tensor workspace = empty_fp32({table_->layer_norm_backward_workspace(shape)});
                table_->layer_norm_backward(shape, dtype_, raw(t[0]), raw(t[1]), fp32(t[2]), fp32(t[3]),
                                            raw(t[4]), raw(t[5]), true, fp32(t[6]), fp32(t[7]), true,
                                            fp32(workspace), stream_);
              });
}

TEST_P(AlignmentTest, OfNormsWhoseRowsAreNoWholePacksApart) {
  const int64_t step = kDim + 1;
  for (const NormShape& shape :
       {NormShape{kRows, 1, kDim, step, kDim, kDim}, NormShape{kRows, 1, kDim, kDim, step, kDim},
        NormShape{kRows, 1, kDim, kDim, kDim, step}}) {
    const Tensor x = rows(), dy = rows(), weight = normal({kDim});
    Tensor stats = empty_fp32({kRows}), inv_std = empty_fp32({kRows}), dweight = empty_fp32({kDim});
    Tensor dbias = empty_fp32({kDim});
    const auto run = [&](const NormShape& s, bool layer) {
      const auto spread = [&](const Tensor& values, int64_t row_step) {
        Tensor wide = empty({kRows, row_step});
        wide.narrow(1, 0, kDim).copy_(values);
        return wide;
      };
      Tensor wide_x = spread(x, s.x_step), wide_dy = spread(dy, s.y_step), dx = spread(x, s.dx_step);
      Tensor y = spread(x, s.y_step), w = weight.clone();
      if (layer) {
        table_->layer_norm(s, dtype_, raw(wide_x), raw(w), nullptr, 1e-5f, raw(y), fp32(stats), fp32(inv_std),
                           {}, {}, stream_);
        Tensor workspace = empty_fp32({table_->layer_norm_backward_workspace(s)});
        table_->layer_norm_backward(s, dtype_, raw(wide_x), raw(w), fp32(stats), fp32(inv_std), raw(wide_dy),
                                    raw(dx), false, fp32(dweight), fp32(dbias), false, fp32(workspace),
                                    stream_);
      } else {
        table_->rms_norm(s, dtype_, raw(wide_x), raw(w), 0, 1e-5f, raw(y), fp32(stats), {}, {}, stream_);
        Tensor workspace = empty_fp32({table_->rms_norm_backward_workspace(s)});
        table_->rms_norm_backward(s, dtype_, raw(wide_x), raw(w), 0, fp32(stats), raw(wide_dy), raw(dx),
                                  false, fp32(dweight), false, fp32(workspace), stream_);
      }
      return Tensors{y.narrow(1, 0, kDim).clone(), dx.narrow(1, 0, kDim).clone(), dweight.clone()};
    };
    for (const bool layer : {false, true}) {
      const Tensors got = run(shape, layer), wanted = run({kRows, 1, kDim, kDim, kDim, kDim}, layer);
      for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], wanted[i], 4);
    }
  }
}

TEST_P(AlignmentTest, OfTablesAndRotations) {
  const Tensor tokens = ints({kRows}, 0, kVocab);
  expect_same("embedding", {normal({kVocab, kDim}), normal({kVocab, kDim}), rows()}, [&](Tensors& t) {
    table_->embedding(shape_, dtype_, tokens.const_data_ptr<int32_t>(), raw(t[0]), {raw(t[1]), kRows, 0},
                      raw(t[2]), stream_);
  });
  expect_same("embedding_backward", {rows(), normal_fp32({kVocab, kDim})}, [&](Tensors& t) {
    Tensor workspace =
        at::empty({table_->embedding_backward_workspace(shape_, kVocab)}, t[0].options().dtype(at::kByte));
    table_->embedding_backward(shape_, dtype_, tokens.const_data_ptr<int32_t>(), kVocab, raw(t[0]),
                               fp32(t[1]), workspace.mutable_data_ptr(), stream_);
  });
  expect_same("position_gradient", {rows(), normal_fp32({kRows, kDim})}, [&](Tensors& t) {
    table_->position_gradient(shape_, dtype_, kRows, raw(t[0]), fp32(t[1]), true, stream_);
  });
  expect_same("rope", {normal_fp32({kRows, kDim}), rows(2 * kDim)}, [&](Tensors& t) {
    table_->rope({kRows, kRows, 0, 2 * kDim, 2, kDim, kDim}, dtype_, fp32(t[0]), false, raw(t[1]), stream_);
  });
  expect_same("rope of a half", {normal_fp32({kRows, kDim / 2}), rows(2 * kDim)}, [&](Tensors& t) {
    table_->rope({kRows, kRows, 0, 2 * kDim, 2, kDim, kDim / 2}, dtype_, fp32(t[0]), false, raw(t[1]),
                 stream_);
  });
  expect_same(
      "pack_gradients", {normal_fp32({kRows, kDim}), rows(4 * kDim), rows(4 * kDim)}, [&](Tensors& t) {
        const auto* from = static_cast<const char*>(raw(t[1]));
        auto* to = static_cast<char*>(raw(t[2]));
        const auto of = [&](int64_t first) {
          return HeadRows{from + first * t[1].element_size(), 4 * kDim, kDim};
        };
        table_->pack_gradients({1, kRows, 2, 1, kDim}, dtype_, of(0), of(2 * kDim), of(3 * kDim),
                               {fp32(t[0]), fp32(t[0]), kDim},
                               {to, 4 * kDim, to + 2 * kDim * t[2].element_size(), 4 * kDim}, stream_);
      });
  expect_same("temperature", {rows()}, [&](Tensors& t) {
    table_->temperature(shape_, kDim, dtype_, {0.1f, 2.0f}, {kRows, 0, nullptr}, raw(t[0]), stream_);
  });
  expect_same("cross_entropy", {rows(), normal_fp32({1}), normal_fp32({kRows})}, [&](Tensors& t) {
    Tensor targets = tokens.clone();
    table_->cross_entropy(shape_, dtype_, {}, raw(t[0]), targets.const_data_ptr<int32_t>(), fp32(t[1]), true,
                          fp32(t[2]), stream_);
  });
  expect_same("token_statistics", {rows(), at::zeros({kTokenStatistics, kRows}, normal_fp32({1}).options())},
              [&](Tensors& t) {
                table_->token_statistics(shape_, dtype_, {}, raw(t[0]), tokens.const_data_ptr<int32_t>(),
                                         fp32(t[1]), stream_);
              });
  expect_same("token_statistics_backward",
              {rows(), normal_fp32({kTokenStatistics, kRows}), normal_fp32({kLossStatistics, kRows}),
               normal_fp32({1})},
              [&](Tensors& t) {
                table_->token_statistics_backward(shape_, dtype_, {}, kDim, raw(t[0]),
                                                  tokens.const_data_ptr<int32_t>(), fp32(t[1]), fp32(t[2]),
                                                  fp32(t[3]), stream_);
              });
}

TEST_P(AlignmentTest, OfOptimizers) {
  const int64_t n = kRows * kDim;
  const bool mixed = type_ != at::kFloat;
  const auto floats = [&] { return normal_fp32({n}).abs(); };
  const auto weights = [&](Tensors& t) {
    return OptimizedWeights{dtype_, raw(t[0]), mixed ? fp32(t[1]) : nullptr};
  };
  expect_same("adamw_step", {normal({n}), floats(), floats(), floats(), floats(), floats()}, [&](Tensors& t) {
    const AdamWScalars scalars{1e-2, 0.9, 0.95, 1e-8, 1e-3, 0.1, 0.05};
    table_->adamw_step(n, scalars, fp32(t[5]), weights(t), fp32(t[2]), fp32(t[3]), fp32(t[4]), stream_);
  });
  expect_same("lion_step", {normal({n}), floats(), floats(), floats(), floats()}, [&](Tensors& t) {
    table_->lion_step(n, {1e-2, 0.9, 0.99, 1e-3}, fp32(t[4]), weights(t), fp32(t[2]), fp32(t[3]), stream_);
  });
  expect_same("sgd_step", {normal({n}), floats(), floats(), floats(), floats()}, [&](Tensors& t) {
    table_->sgd_step(n, {1e-2, 0.9, 1e-3, true}, fp32(t[4]), weights(t), fp32(t[2]), fp32(t[3]), stream_);
  });
  expect_same("muon", {normal({n}), floats(), floats(), floats(), normal({n}), floats()}, [&](Tensors& t) {
    table_->muon_momentum(n, 0.9, true, fp32(t[5]), fp32(t[2]), fp32(t[3]), dtype_, raw(t[4]), stream_);
    table_->add_update(n, 1e-2, 1e-3, weights(t), dtype_, raw(t[4]), stream_);
  });
}

TYCHO_ON_EVERY_TABLE(AlignmentTest);

}  // namespace
}  // namespace tycho
