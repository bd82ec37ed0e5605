// Finds, prepares for, and opens libtycho_engine.so.
#include "host/engine.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>

#include <cstdlib>
#include <filesystem>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "host/build_facts.h"
#include "host/machine.h"
#include "host/torch_folder.h"
#include "trainer/base/error.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
const char* const kEngineFile = "libtycho_engine.so";
constexpr int kThreadsBesideCompute = 8;  // the loader, the saver, loggers, what watches the ranks

void set_unless_set(const char* name, const std::string& value) {
  setenv(name, value.c_str(), /*overwrite=*/0);
}

/// Makes OpenMP's threads sleep when they wait, unless the user decides; OpenMP reads these variables when
/// the engine is loaded. LibTorch's small operations between our kernels use them, and threads that spin take
/// the cores of our own (bench/results/train_step_demo.md).
void prepare_openmp(int threads) {
  set_unless_set("OMP_WAIT_POLICY", "passive");
  set_unless_set("OMP_NUM_THREADS", std::to_string(threads > 0 ? threads : usable_cores()));
}

/// Makes malloc keep freed memory. By default glibc returns big buffers to the kernel and faults them in
/// again at every step, which costs 12-23 % of a step.
void keep_memory() {
  for (const char* name :
       {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(name) != nullptr) return;
  }
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
}

/// Silences LibTorch, whose profiler reports missing GPUs as errors, and which warns at every attempt of a
/// rank to reach another one.
void quiet_libtorch() {
  set_unless_set("TORCH_CPP_LOG_LEVEL", "ERROR");
  if (visible_gpus().empty()) set_unless_set("KINETO_LOG_LEVEL", "5");
}

/// Returns the folder of this program, without symbolic links: pipx links to it.
fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

/// Returns the engine of a package (lib/tycho), of an installed or built tree (lib), or beside the program.
fs::path engine_path() {
  std::error_code error;
  const fs::path folder = program_folder(), prefix = folder.parent_path();
  for (const fs::path& path :
       {prefix / "lib/tycho" / kEngineFile, folder / ".." / "lib" / kEngineFile, folder / kEngineFile}) {
    if (fs::exists(path, error)) return path;
  }
  fail(
      ExitCode::kFailure,
      "[engine] {} is neither in {} nor next to the program: build the target tycho_engine, or install again",
      kEngineFile, (folder / ".." / "lib").lexically_normal().string());
}

/// Throws Error (kNumerics) unless `count` threads can be started. LibTorch waits without end for threads
/// that the system refuses, and no signal reaches it there.
void ensure_room_for_threads(int count) {
  std::latch end(1);
  std::vector<std::thread> made;
  try {
    while (std::ssize(made) < count) made.emplace_back([&] { end.wait(); });
  } catch (const std::system_error&) {  // the count says it
  }
  const auto found = std::ssize(made);
  end.count_down();
  for (std::thread& one : made) one.join();
  if (found < count)
    fail(ExitCode::kNumerics,
         "[engine] expected room for {} threads, got {}: raise pids.max of the control group or `ulimit -u`, "
         "or "
         "take fewer with threads=N",
         count, found);
}

/// Returns the folder "torch" of libtorch_cpu.so as the loader finds or has found it, "" where it finds none.
/// `flags`: RTLD_NOLOAD to ask for a loaded one only.
fs::path loaded_torch(int flags) {
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_LOCAL | flags);
  const link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return {};
  return fs::path(map->l_name).parent_path().parent_path();
}

/// Throws Error (kUnusable) that names a LibTorch which the engine was not built for.
void check_torch(const fs::path& torch) {
  const std::string problem = torch_problem(torch, {build_facts().torch, build_facts().cuda_major});
  if (!problem.empty()) fail(ExitCode::kUnusable, "[engine] {}", problem);
}

/// Opens the LibTorch that pip installed, so that the engine finds it open under its name. Throws Error
/// (kUnusable) when there is none of the right release.
void open_installed_torch() {
  const char* base = std::getenv("PYTHONUSERBASE");
  const char* home = std::getenv("HOME");
  const fs::path user = base != nullptr   ? fs::path(base)
                        : home != nullptr ? fs::path(home) / ".local"
                                          : fs::path();
  const std::vector<fs::path> found = installed_torches(program_folder().parent_path(), user);
  const TorchNeed need = {build_facts().torch, build_facts().cuda_major};
  for (const fs::path& torch : found) {
    if (!torch_problem(torch, need).empty()) continue;
    const fs::path library = torch / "lib/libtorch_cpu.so";
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
    fail(ExitCode::kUnusable, "[engine] cannot open {}: {}; install torch again", library.string(),
         dlerror());
  }
  if (!found.empty()) check_torch(found.front());
  fail(
      ExitCode::kUnusable,
      "[engine] expected torch {}, found none in {} nor in the Python packages of this user and this system: "
      "`pip install 'torch=={}.*'` there, or name the folder of libtorch_cpu.so in LD_LIBRARY_PATH",
      need.version, program_folder().parent_path().string(), need.version);
}

/// Opens the engine and the LibTorch that it was built for. The loader looks in LD_LIBRARY_PATH and where the
/// engine was told to look when it was built; only when there is none there, Python's packages are searched.
void* open_library(const std::string& path) {
  const int flags = RTLD_NOW | RTLD_LOCAL;
  void* library = dlopen(path.c_str(), flags);
  if (library != nullptr) {
    check_torch(loaded_torch(RTLD_NOLOAD));
    return library;
  }
  const std::string problem = dlerror();
  if (const fs::path torch = loaded_torch(0); !torch.empty()) {
    check_torch(torch);
    if (problem.find("undefined symbol") != std::string::npos)
      fail(ExitCode::kUnusable,
           "[engine] expected torch {}, got another LibTorch in {} ({}): if LD_LIBRARY_PATH names it, take "
           "it out",
           build_facts().torch, torch.string(), problem);
  } else if (problem.find("libtorch_cpu.so") != std::string::npos ||
             problem.find("libc10.so") != std::string::npos) {
    open_installed_torch();
    library = dlopen(path.c_str(), flags);
    if (library != nullptr) return library;
    fail(ExitCode::kUnusable, "[engine] cannot open {}: {}", path, dlerror());
  }
  fail(ExitCode::kFailure, "[engine] cannot open {}: {}; scripts/setup installs LibTorch", path, problem);
}

const EngineApi& load(int threads) {
  const std::string path = engine_path();
  ensure_room_for_threads((threads > 0 ? threads : usable_cores()) + kThreadsBesideCompute);
  prepare_openmp(threads);
  keep_memory();
  quiet_libtorch();
  void* library = open_library(path);
  using Entry = const EngineApi* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "tycho_engine_api"));
  if (entry == nullptr) fail(ExitCode::kFailure, "[engine] {} has no tycho_engine_api: rebuild it", path);
  const EngineApi& api = *entry();
  if (api.build_id != this_build())
    fail(ExitCode::kFailure,
         "[engine] expected {} built from the headers of this program, got an engine built from others: "
         "rebuild both, or install both again",
         path);
  return api;
}

}  // namespace

const EngineApi& open_engine(int threads) {
  static const EngineApi& api = load(threads);
  return api;
}

}  // namespace tycho
