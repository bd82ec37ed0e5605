// Opens the CUDA plug-in on demand and initialises the GPU before anything asks about it.
#include "trainer/device/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "trainer/base/error.h"
#include "trainer/base/processor_name.h"
#include "trainer/cuda_plugin/cuda_plugin.h"
#include "trainer/cuda_plugin/driver_table.h"
#include "trainer/cuda_plugin/nccl_table.h"
#include "trainer/device/gpu_driver.h"
#include "trainer/device/gpus.h"
#include "trainer/device/libtorch_version.h"
#include "trainer/kernels/attention/flash_attention_3.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/library_folder.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/library_products.h"
#include "trainer/layout/gpu_attention.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {
namespace {

// The folder that holds this code's shared library: the plug-in is installed there.
std::filesystem::path own_folder() { return library_folder(reinterpret_cast<void*>(&own_folder)); }

const DriverTable* driver = nullptr;
void set_driver(const DriverTable* table) { driver = table; }

// Opens the plug-in once; why it could not be opened, or "".
const std::string& load_cuda_plugin() {
  static const std::string problem = [] {
    const std::string path = own_folder() / "libtycho_cuda.so";
    if (access(path.c_str(), F_OK) != 0) return path + " does not exist: this build has no CUDA support";
    // LibTorch's CUDA half beside its CPU half, wherever that was found: its own libraries follow it by name.
    const std::string torch =
        library_folder(reinterpret_cast<void*>(&at::get_num_threads)) / "libtorch_cuda.so";
    if (access(torch.c_str(), F_OK) != 0)
      return torch + " does not exist: this LibTorch is for CPUs only, and that of PyPI has CUDA";
    if (dlopen(torch.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) return std::string(dlerror());
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return std::string(dlerror());
    const auto init = reinterpret_cast<decltype(&tycho_cuda_init)>(dlsym(library, kCudaInit));
    if (init == nullptr) return path + " has no " + kCudaInit + ": it belongs to a different version";
    init(&set_cuda_kernels, &set_nccl, &set_driver, &set_library_products);
    return std::string();
  }();
  return problem;
}

int64_t status_value(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  return 0;
}

// What the driver calls this machine's GPUs: "NVIDIA H200"; "" when it does not say, as in some containers.
// Read from /proc, which needs no CUDA header.
std::string gpu_model() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream in(gpu.path() / "information");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("Model:")) names.push_back(line.substr(line.find_first_not_of(" \t", 6)));
  }
  std::sort(names.begin(), names.end());
  // Machines rarely mix GPU models; on one that does, the order differs from the driver's, and no name is
  // better than a wrong one.
  const bool alike = !names.empty() && names.front() == names.back();
  return alike ? names.front() : "";
}

// A GPU that is ready to be asked and used: LibTorch's allocator knows no device before it is initialised,
// and a thread that was told nothing launches on GPU 0.
at::Device ready_gpu(int index) {
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
  at::globalContext().lazyInitDevice(at::kCUDA);
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  return device;
}

// Why this process has no GPU.
std::string no_gpu_reason() {
  const std::string& problem = load_cuda_plugin();
  return problem.empty() ? gpu_problem(driver->state(), gpu_surroundings()) : problem;
}

}  // namespace

at::Device choose_device(DeviceKind kind, int local_rank) {
  if (kind == DeviceKind::kCpu) return at::kCPU;
  // Asking for a driver costs little; opening LibTorch's CUDA half costs a second, so auto looks first.
  if (kind == DeviceKind::kAuto && !gpu_surroundings().has_control_node) return at::kCPU;
  if (const std::string problem = libtorch_problem(libtorch_version()); !problem.empty())
    fail(ExitCode::kTopology, "[device] {}", problem);
  const int num_gpus = load_cuda_plugin().empty() ? driver->state().num_gpus : 0;
  // Schedulers show each rank its own GPU alone, or all of them to every rank.
  if (num_gpus == 1) return ready_gpu(0);
  if (num_gpus > local_rank) return ready_gpu(local_rank);
  if (num_gpus > 0)
    fail(ExitCode::kTopology,
         "[device] this machine has {} GPUs, and local rank {} needs its own: start at most {} ranks per "
         "machine",
         num_gpus, local_rank, num_gpus);
  if (kind == DeviceKind::kAuto) return at::kCPU;
  fail(ExitCode::kTopology,
       "[device] expected a GPU (device = \"cuda\"), {}. Use device=cpu, or a machine with a GPU and a build "
       "with TYCHO_CUDA=ON",
       no_gpu_reason());
}

Json usable_gpus() {
  if (!load_cuda_plugin().empty()) return Json::object();
  const DriverState state = driver->state();
  const GpuSurroundings around = gpu_surroundings();
  if (state.num_gpus > 0) {
    const ProgramCompiler& nvrtc = driver->program_compiler();
    const std::string flash_3 = flash_3_path(torch_packages());
    return {{"gpus", state.num_gpus},
            {"flash_attn_3", flash_3},
            {"flash_attn_3_problem", flash_3.empty() ? "" : flash_3_problem()},
            {"nvrtc", fmt::format("{}.{}", nvrtc.version / 1000, nvrtc.version % 1000 / 10)},
            {"nvrtc_path", nvrtc.path},
            {"nvrtc_problem", nvrtc.problem}};
  }
  return {{"gpus", 0},
          {"has_driver", state.driver > 0 || around.has_control_node},
          {"gpu_problem", gpu_problem(state, around)}};
}

int set_threads(int64_t wanted, const RankInfo& place) {
  const int threads = threads_of_rank(wanted, place);
  at::set_num_threads(threads);
  return threads;
}

std::string device_name(const at::Device& device) {
  if (device.is_cpu()) return fmt::format("{} threads, {}", at::get_num_threads(), processor_name());
  const std::string model = gpu_model();
  return model.empty() ? fmt::format("CUDA device {}", device.index()) : model;
}

int64_t peak_memory_bytes(const at::Device& device) {
  if (device.is_cpu()) return status_value("/proc/self/status", "VmHWM:");
  return at::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[0].peak;
}

int64_t memory_bytes(const at::Device& device) {
  if (device.is_cpu()) return status_value("/proc/self/status", "VmRSS:");
  return at::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[0].current;
}

int64_t free_memory_bytes(const at::Device& gpu) {
  at::DeviceAllocator& allocator = *at::getDeviceAllocator(gpu.type());
  allocator.emptyCache();  // of an earlier run of this process
  return static_cast<int64_t>(allocator.getMemoryInfo(gpu.index()).first);
}

int64_t device_memory_bytes(const at::Device& device) {
  if (device.is_cpu()) return status_value("/proc/meminfo", "MemTotal:");
  return static_cast<int64_t>(at::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).second);
}

GpuShape gpu_shape_of(const at::Device& device) {
  return device.is_cpu() ? GpuShape{} : driver->shape(device.index());
}

std::vector<std::string> speed_notes(const at::Device& device, const TrainConfig& config) {
  const bool bf16 = config.precision == Precision::kBf16;
  std::vector<std::string> notes;
  if (device.is_cpu() && config.device == DeviceKind::kAuto && gpu_surroundings().has_control_node)
    notes.push_back("device = \"auto\" trains on the CPU although this machine has a driver for GPUs: " +
                    no_gpu_reason());
  if (bf16 && !bf16_is_native(device))
    notes.push_back(
        "this CPU has no bf16 matrix units: products run in fp32 and precision=fp32 is faster here");
  if (config.model.fp8.is_used() && device.is_cpu())
    notes.push_back(
        "CPUs have no products of fp8: operands are rounded to fp8 and multiplied as bf16, which is slower "
        "than precision = \"bf16\" alone");
  if (device.is_cpu()) return notes;
  const DecoderSpec spec = decoder_spec(config.model, config.attention);
  if (const char* why = flash_3_attention_obstacle(spec, bf16, config.seq_len, config.parallel.cp);
      spec.attention.flash_3 && why != nullptr)
    notes.push_back(fmt::format("attention does not use FlashAttention-3: {}", why));
  if (const char* obstacle = gpu_attention_obstacle(spec, bf16, config.seq_len, config.parallel.cp))
    notes.push_back(fmt::format("attention uses plain products instead of flash attention: {}", obstacle));
  else if (!config.attention.deterministic && !spec.attention.flash_3)
    if (const char* why = cudnn_attention_obstacle(spec, bf16, config.seq_len, config.parallel.cp))
      notes.push_back(fmt::format("attention uses flash attention instead of cuDNN's: {}", why));
  return notes;
}

void require_flash_3(const at::Device& device, const TrainConfig& config) {
  const DecoderSpec spec = decoder_spec(config.model, config.attention);
  const bool bf16 = config.precision == Precision::kBf16;
  if (device.is_cpu() || !uses_flash_3(spec, bf16, config.seq_len, config.parallel.cp)) return;
  if (const std::string& problem = flash_3_problem(); !problem.empty())
    fail(ExitCode::kTopology, "{}", problem);
}

Json engine_versions() {
  Json here = Json::array(), lacking = Json::array();
  for (const char* name : kInstructionSets) (cpu_kernels_for(name) ? here : lacking).push_back(name);
  Json versions = {{"libtorch", libtorch_version()},
                   {"cpu_capability", at::get_cpu_capability()},
                   {"processor", processor_name()},
                   {"kernels", cpu_kernels().name},
                   {"instruction_sets", here},
                   {"instruction_sets_lacking", lacking},
                   {"products_fp32", matmul_route(at::kCPU, at::kFloat)},
                   {"products_bf16", matmul_route(at::kCPU, at::kBFloat16)}};
  if (std::string problem = libtorch_problem(libtorch_version()); !problem.empty())
    versions["libtorch_problem"] = std::move(problem);
  return versions;
}

Json compute_route(const at::Device& device, Precision precision) {
  const bool bf16 = precision == Precision::kBf16;
  Json route = {{"libtorch", libtorch_version()},
                {"kernels", device.is_cpu() ? cpu_kernels().name : "cuda"},
                {"products", matmul_route(device, bf16 ? at::kBFloat16 : at::kFloat)}};
  if (!device.is_cpu()) {
    const std::string model = gpu_model();
    route["device"] = model.empty() ? "a GPU of unknown model" : model;
  } else {
    route["aten"] = at::get_cpu_capability();
    const bool ours = bf16 ? bf16_is_ours() : fp32_is_ours();
    if (!ours) {
      route["processor"] = processor_name();
      route["threads"] = fmt::to_string(at::get_num_threads());
    }
  }
  return route;
}

Json run_versions(const at::Device& device, Precision precision) {
  Json versions = engine_versions();
  versions["route"] = compute_route(device, precision);
  return versions;
}

}  // namespace tycho
