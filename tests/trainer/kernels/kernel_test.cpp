// Tables, numbers and comparison for the tests of kernels.
#include "tests/trainer/kernels/kernel_test.h"

#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "trainer/base/error.h"
#include "trainer/cuda_plugin/cuda_plugin.h"
#include "trainer/kernels/twins/library_products.h"

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

/// Loads libtycho_cuda.so when this build made one and a GPU is present.
const KernelTable* load_cuda_table() {
  const CudaTables tables = open_cuda_plugin();
  if (!tables.kernels || !at::hasCUDA()) return nullptr;
  set_cuda_kernels(tables.kernels);
  return tables.kernels;
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
/// Tensors of the CPU from here on are memory that the emulated GPU knows, in which nothing was written.
class RememberingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    void* data = nullptr;
    if (num_bytes == 0) return {nullptr, nullptr, &give_back, at::kCPU};
    if (posix_memalign(&data, 64, num_bytes) != 0) throw std::bad_alloc();
    if (num_bytes < kMostFilled) std::memset(data, 0xff, num_bytes);  // NaN
    emulated_cuda().remember(data, num_bytes);
    return {data, data, &give_back, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t num_bytes) const override {
    std::memcpy(to, from, num_bytes);
  }

 private:
  static constexpr size_t kMostFilled = size_t{1}
                                        << 28;  // larger ones are not meant to be touched as a whole
  static void give_back(void* data) {
    if (data) emulated_cuda().forget(data);
    std::free(data);
  }
};

#ifdef TYCHO_CUDA_PLUGIN
/// LibTorch looks for its CUDA libraries once, when it is first asked, such as by a seed.
class LoadsCudaFirst : public testing::Environment {
 public:
  void SetUp() override { find_table("cuda"); }
};
const testing::Environment* const loads_cuda_first =
    testing::AddGlobalTestEnvironment(new LoadsCudaFirst);  // GoogleTest deletes it
#endif

at::Generator& generator() {
  static at::Generator generator = at::detail::createCPUGenerator();
  return generator;
}

}  // namespace

CudaTables open_cuda_plugin() {
  static CudaTables tables;
#ifdef TYCHO_CUDA_PLUGIN
  if (tables.kernels) return tables;
  void* plugin = dlopen(TYCHO_CUDA_PLUGIN, RTLD_NOW | RTLD_GLOBAL);
  TYCHO_CHECK(plugin, "[test] expected {}, got {}", TYCHO_CUDA_PLUGIN, dlerror());
  reinterpret_cast<decltype(&tycho_cuda_init)>(dlsym(plugin, kCudaInit))(
      [](const KernelTable* table) { tables.kernels = table; },
      [](const NcclTable* table) { tables.nccl = table; }, [](const DriverTable*) {}, set_library_products);
#endif
  return tables;
}

const EmulatedCuda& emulated_cuda() {
  static const EmulatedCuda& emulated = []() -> const EmulatedCuda& {
    const char* const other = std::getenv("TYCHO_EMULATED_CUDA");  // one with a mistake in it
    void* library = dlopen(other ? other : TYCHO_EMULATED_CUDA_PLUGIN, RTLD_NOW);
    TYCHO_CHECK(library, "[test] expected the emulated GPU, got {}", dlerror());
    return *reinterpret_cast<decltype(&tycho_emulated_cuda)>(dlsym(library, "tycho_emulated_cuda"))();
  }();
  static RememberingAllocator allocator;
  static const bool once = [] {
    if (const char* order = std::getenv("TYCHO_EMULATED_ORDER")) emulated.set_order(order);
    c10::SetCPUAllocator(&allocator, 1);
    return true;
  }();
  static_cast<void>(once);
  return emulated;
}

const KernelTable* find_table(const std::string& name) {
  if (name == "emulated") return emulated_cuda().table;
  if (name.ends_with("_emulated")) return emulated_table(name);
  if (name != "cuda") return cpu_kernels_for(name);
  static const KernelTable* table = load_cuda_table();
  return table;
}

std::vector<const KernelTable*> cpu_tables() {
  std::vector<const KernelTable*> tables;
  for (const auto* names : {&kWholeTables, &kBf16Tables})
    for (const std::string& name : *names)
      if (name != "cuda" && name != "emulated")
        if (const KernelTable* table = find_table(name)) tables.push_back(table);
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
  ADD_FAILURE() << "expected an Error";
  return "";
}

}  // namespace tycho
