// Tables, numbers and comparison for the tests of kernels.
#include "tests/trainer/kernels/kernel_test.h"

#include <dlfcn.h>

#include "trainer/base/error.h"

namespace tycho {

#ifdef TYCHO_EMULATED_TABLES
namespace avx512_emulated {
const KernelTable& table();
}
namespace avx512_bf16_emulated {
const KernelTable& table();
}
namespace amx_bf16_emulated {
const KernelTable& table();
}
#endif

namespace {

const KernelTable* cuda_table = nullptr;

/// Loads libtycho_cuda.so when this build made one and a GPU is present.
const KernelTable* load_cuda_table() {
#ifdef TYCHO_CUDA_PLUGIN
  void* plugin = dlopen(TYCHO_CUDA_PLUGIN, RTLD_NOW | RTLD_GLOBAL);
  if (!plugin || !at::hasCUDA()) return nullptr;
  using Init = void (*)(void (*)(const KernelTable*));
  reinterpret_cast<Init>(dlsym(plugin, "tycho_cuda_init"))(
      [](const KernelTable* table) { cuda_table = table; });
  set_cuda_kernels(cuda_table);
#endif
  return cuda_table;
}

const KernelTable* emulated_table([[maybe_unused]] const std::string& name) {
#ifdef TYCHO_EMULATED_TABLES
  if (!cpu_kernels_for("avx2")) return nullptr;  // what they are compiled for
  if (name == "avx512_emulated") return &avx512_emulated::table();
  if (name == "avx512_bf16_emulated") return &avx512_bf16_emulated::table();
  if (name == "amx_bf16_emulated") return &amx_bf16_emulated::table();
#endif
  return nullptr;
}

at::Generator& generator() {
  static at::Generator generator = at::detail::createCPUGenerator();
  return generator;
}

}  // namespace

const KernelTable* find_table(const std::string& name) {
  if (name.ends_with("_emulated")) return emulated_table(name);
  if (name != "cuda") return cpu_kernels_for(name);
  static const KernelTable* table = load_cuda_table();
  return table;
}

std::vector<const KernelTable*> cpu_tables() {
  std::vector<const KernelTable*> tables;
  for (const auto* names : {&kWholeTables, &kBf16Tables})
    for (const std::string& name : *names)
      if (const KernelTable* table = name == "cuda" ? nullptr : find_table(name)) tables.push_back(table);
  return tables;
}

void KernelTest::SetUp() {
  const auto& [name, type] = GetParam();
  table_ = find_table(name);
  if (!table_) GTEST_SKIP() << "this machine cannot run the kernels of " << name;
  type_ = type;
  dtype_ = type == at::kFloat ? Dtype::kFp32 : Dtype::kBf16;
  device_ = name == "cuda" ? at::kCUDA : at::kCPU;
  generator().set_current_seed(1234);
}

Tensor KernelTest::normal_fp32(at::IntArrayRef shape, double scale) const {
  return at::normal(0.0, scale, shape, generator()).to(device_);
}

Tensor KernelTest::normal(at::IntArrayRef shape, double scale) const {
  return normal_fp32(shape, scale).to(type_);
}

Tensor KernelTest::ints(at::IntArrayRef shape, int64_t low, int64_t high) const {
  return at::randint(low, high, shape, generator(), at::TensorOptions().dtype(at::kInt)).to(device_);
}

void KernelTest::expect_close(const Tensor& actual, const Tensor& oracle, double slack) const {
  const bool coarse = actual.scalar_type() == at::kBFloat16;
  const double relative = slack * (coarse ? 0x1p-8 : 4e-6), absolute = slack * (coarse ? 0x1p-14 : 2e-6);
  const Tensor a = as_double(actual), b = as_double(oracle);
  ASSERT_EQ(a.sizes(), b.sizes());
  const Tensor excess = (a - b).abs() - (b.abs() * relative + absolute);
  const double worst = excess.numel() ? excess.max().item<double>() : 0.0;
  EXPECT_LE(worst, 0.0) << "largest difference " << (a - b).abs().max().item<double>() << ", oracle up to "
                        << b.abs().max().item<double>();
}

std::string kernel_test_name(const testing::TestParamInfo<KernelTest::ParamType>& info) {
  return std::get<0>(info.param) + (std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16");
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "wanted an Error";
  return "";
}

}  // namespace tycho
