// Programs on the GPU: one kernel for each set of operations and forms of arrays, compiled when it is first
// met.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/expression/gpu/gpu_run.h"
#include "trainer/expression/gpu/gpu_text.h"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/nvrtc.h"
#include "trainer/kernels/cuda/program_cache.h"
#include "trainer/kernels/cuda/program_places.h"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

constexpr int64_t kThreads = 256, kMostBlocks = 1 << 16, kPack = 4;

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check_status("run_program", "an answer of the GPU", cudaDeviceGetAttribute(&value, name, device));
  return value;
}

int current_capability() {
  int device = 0;
  check_status("run_program", "a current GPU", cudaGetDevice(&device));
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) +
         attribute(cudaDevAttrComputeCapabilityMinor, device);
}

GpuArray form_of(const ProgramMemory& memory) {
  GpuArray array{.one = memory.step == 0, .read = memory.read, .written = memory.written};
  if (memory.weights == nullptr) {
    array.form = memory.dtype == Dtype::kFp32 ? GpuArray::Form::kFp32 : GpuArray::Form::kBf16;
  } else if (memory.weights->dtype == Dtype::kFp32) {
    array.form = GpuArray::Form::kFp32;
  } else if (memory.weights->master != nullptr) {
    array.form = GpuArray::Form::kMixed;
  } else {
    array.form = memory.weights->stochastic ? GpuArray::Form::kStochasticBf16 : GpuArray::Form::kBf16;
  }
  return array;
}

/// Returns what tells the text of one program from that of another.
std::string text_key(int capability, const TileProgram& program, const std::vector<GpuArray>& arrays) {
  std::string key;
  const auto add = [&](auto number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(capability), add(program.num_arrays), add(program.num_temporaries), add(program.num_constants);
  for (int32_t i = 0; i < program.num_instructions; ++i) {
    const TileInstruction& x = program.instructions[i];
    add(x.op), add(x.then), add(x.fusion), add(x.to), add(x.a), add(x.b), add(x.c);
  }
  for (const GpuArray& array : arrays)
    add(static_cast<uint8_t>(array.form)), add(array.one), add(array.read), add(array.written);
  return key;
}

cudaKernel_t load(const std::string& code) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  check_status("run_program", "a GPU that takes the compiled program",
               cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  check_status("run_program", "a kernel in the compiled program",
               cudaLibraryGetKernel(&kernel, library, kGpuKernel));
  return kernel;
}

/// Returns the kernel of a program for the current GPU. Kernels stay loaded until the process ends.
cudaKernel_t kernel_of(const TileProgram& program, const std::vector<GpuArray>& arrays) {
  static std::mutex mutex;
  static auto* const kernels = new std::map<std::string, cudaKernel_t>;
  const int capability = current_capability();
  const std::string key = text_key(capability, program, arrays);
  const std::lock_guard lock(mutex);
  if (const auto found = kernels->find(key); found != kernels->end()) return found->second;
  const std::string text = gpu_text(program, arrays);
  const Nvrtc& nvrtc = own_nvrtc();
  const NvrtcTarget target = nvrtc.target(capability);
  const std::string version =
      fmt::format("{} {} {}\n", nvrtc.state().version, target.arch, target.own ? "machine code" : "ptx");
  const cudaKernel_t kernel =
      load(cached_program(program_folder(), version + text, [&] { return nvrtc.compile(text, target); }));
  kernels->emplace(key, kernel);
  return kernel;
}

/// The argument of the kernel: a GpuRun, the arrays, the constants.
class Arguments {
 public:
  Arguments(RowsShape shape, const TileProgram& program, const ProgramMemory* arrays) {
    GpuRun run{};
    run.rows = shape.rows, run.dim = shape.dim, run.packs = shape.dim % kPack == 0 ? 1 : 0;
    std::vector<GpuArrayMemory> memory;
    for (int32_t i = 0; i < program.num_arrays; ++i) add(arrays[i], run, memory);
    append(&run, sizeof run);
    append(memory.data(), memory.size() * sizeof(GpuArrayMemory));
    append(program.constants, static_cast<size_t>(program.num_constants) * sizeof(float));
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    packs = run.packs != 0;
  }

  void* data() { return bytes_.data(); }
  bool packs = false;

 private:
  static void add(const ProgramMemory& array, GpuRun& run, std::vector<GpuArrayMemory>& memory) {
    static_assert(sizeof(GpuRuns) == sizeof(ParamRuns));
    GpuArrayMemory& to = memory.emplace_back(GpuArrayMemory{array.data, array.row_step});
    if (!array.read && !array.written) return;
    if (const OptimizedWeights* const weights = array.weights) {
      to.data = weights->params, run.master = weights->master;
      run.key = weights->key, run.step = weights->step;
      std::memcpy(&run.place, &weights->place, sizeof run.place);
    }
    if (array.step == 0) return;
    const bool bf16 = array.dtype == Dtype::kBf16;
    const bool fits = reinterpret_cast<uintptr_t>(to.data) % (bf16 ? 8 : 16) == 0 &&
                      (run.rows == 1 || to.row_step % kPack == 0) &&
                      (array.weights == nullptr || reinterpret_cast<uintptr_t>(run.master) % 16 == 0);
    if (!fits) run.packs = 0;
  }
  void append(const void* data, size_t num_bytes) {
    const auto* const begin = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), begin, begin + num_bytes);
  }

  std::vector<char> bytes_;
};

}  // namespace

void run_program(RowsShape shape, const TileProgram& program, const ProgramMemory* arrays, Stream stream) {
  if (shape.rows == 0 || shape.dim == 0) return;
  std::vector<GpuArray> forms;
  for (int32_t i = 0; i < program.num_arrays; ++i) forms.push_back(form_of(arrays[i]));
  const cudaKernel_t kernel = kernel_of(program, forms);
  Arguments arguments(shape, program, arrays);
  const int64_t threads = shape.rows * shape.dim / (arguments.packs ? kPack : 1);
  const int64_t wanted = (threads + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  void* parameters[] = {arguments.data()};
  check_status("run_program", "a GPU that starts the program",
               cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(kThreads),
                                parameters, 0, static_cast<cudaStream_t>(stream)));
}

}  // namespace tycho::cuda
