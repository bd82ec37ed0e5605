// What the tests of kernels share: every table that this machine can run, numbers, and comparison with a
// double oracle.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/emulated_cuda/table.h"
#include "tests/trainer/aten.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {

struct NcclTable;

/// The GPU's kernels on the CPU: tests/emulated_cuda. TYCHO_EMULATED_ORDER=forward|backward|random|greedy|
/// greedy-backward runs their threads and blocks in that order; otherwise each launch takes another.
const EmulatedCuda& emulated_cuda();

/// What libtycho_cuda.so hands over, GPU or not; nothing where this build has none.
struct CudaTables {
  const KernelTable* kernels = nullptr;
  const NcclTable* nccl = nullptr;
};
CudaTables open_cuda_plugin();

/// The table of an instruction set, of an emulated one ("avx512_emulated"), of "cuda", or of the emulated GPU
/// ("emulated"); null where this machine cannot run it.
const KernelTable* find_table(const std::string& name);
/// Tables whose kernels are written or compiled apart, and those that differ from one of them in products of
/// bf16 alone.
inline const std::vector<std::string> kWholeTables = {"generic",         "avx2", "avx512",
                                                      "avx512_emulated", "cuda", "emulated"};
inline const std::vector<std::string> kBf16Tables = {"avx512_bf16", "amx_bf16", "avx512_bf16_emulated",
                                                     "amx_bf16_emulated"};
/// All of them but the GPU's that this machine can run.
std::vector<const KernelTable*> cpu_tables();

/// Runs a test on every table and dtype; says skipped where a table cannot run.
class KernelTest : public testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  void SetUp() override;

  /// Reproducible normal numbers of the test's dtype, on the table's device.
  Tensor normal(at::IntArrayRef shape, double scale = 1.0) const;
  Tensor normal_fp32(at::IntArrayRef shape, double scale = 1.0) const;
  Tensor ints(at::IntArrayRef shape, int64_t low, int64_t high) const;
  Tensor empty(at::IntArrayRef shape) const {
    return at::empty(shape, at::TensorOptions(device_).dtype(type_));
  }
  Tensor empty_fp32(at::IntArrayRef shape) const {
    return at::empty(shape, at::TensorOptions(device_).dtype(at::kFloat));
  }
  Tensor on_device(const Tensor& tensor) const { return tensor.to(device_); }

  /// Compares with an oracle in double, to the precision of `actual`'s dtype; `slack` widens it.
  void expect_close(const Tensor& actual, const Tensor& oracle, double slack = 1.0) const;

  const KernelTable* table_ = nullptr;
  Dtype dtype_ = Dtype::kFp32;
  at::ScalarType type_ = at::kFloat;
  at::Device device_ = at::kCPU;
};

/// "avx2_bf16".
std::string kernel_test_name(const testing::TestParamInfo<KernelTest::ParamType>& info);

/// The text of the Error that `call` raises; fails the test when there is none.
std::string error_of(const std::function<void()>& call);

inline Tensor as_double(const Tensor& tensor) { return tensor.detach().cpu().to(at::kDouble); }
inline Tensor leaf(const Tensor& tensor) { return as_double(tensor).clone().requires_grad_(true); }

#define TYCHO_ON_EVERY_TABLE(suite)                                                                  \
  INSTANTIATE_TEST_SUITE_P(                                                                          \
      Tables, suite,                                                                                 \
      testing::Combine(testing::ValuesIn(kWholeTables), testing::Values(at::kFloat, at::kBFloat16)), \
      kernel_test_name)

}  // namespace tycho
