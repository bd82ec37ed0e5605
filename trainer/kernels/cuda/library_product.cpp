// Products by cuBLASLt, with what it does along with them. The algorithm of a form is the one that the run
// was given for it, else the first that the library's heuristic names, once for each form and GPU.
#include "trainer/kernels/cuda/library_product.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "trainer/kernels/cuda/lt_problem.h"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

constexpr uint32_t kEpilogueAlignment = 16;

struct Algorithm {
  cublasLtMatmulAlgo_t algorithm = {};
  int64_t workspace = -1;  // bytes; -1: the library has no algorithm
  bool is_given = false;   // by `use`
};

struct Choices {
  std::mutex mutex;
  std::map<std::pair<int, ProductForm>, Algorithm> all;  // by GPU
};
Choices& choices() {
  static auto* const made = new Choices;
  return *made;
}

int current_gpu() {
  int device = 0;
  check_status("matmul", "a current GPU", cudaGetDevice(&device));
  return device;
}

const char* name() {
  static const std::string name = cublas_lt() == nullptr ? "" : "cuBLASLt " + cublas_lt_version();
  return name.c_str();
}

Algorithm first_algorithm(const LtProblem& problem) {
  const auto found = problem.algorithms(1);
  if (found.empty()) return {};
  return {found[0].algo, static_cast<int64_t>(found[0].workspaceSize)};
}

int64_t workspace(MatmulShape s, MatmulOperand left, MatmulOperand right, MatmulResult to,
                  ProductEpilogue epilogue) {
  if (cublas_lt() == nullptr || s.rows == 0 || s.columns == 0 || s.depth == 0) return -1;
  for (const void* memory : {epilogue_memory(epilogue), gelu_memory(epilogue)})
    if (product_alignment(memory) < kEpilogueAlignment) return -1;
  if (gelu_memory(epilogue) != nullptr && s.columns % 8 != 0) return -1;  // a rule of its leading dimension
  const LtCall call = {s, left, right, to, epilogue};
  const std::pair key(current_gpu(), call.form());
  const std::lock_guard lock(choices().mutex);
  auto found = choices().all.find(key);
  if (found == choices().all.end())
    found = choices().all.emplace(key, first_algorithm(LtProblem(call))).first;
  return found->second.workspace;
}

bool multiply(MatmulShape s, MatmulOperand left, MatmulOperand right, MatmulResult to,
              ProductEpilogue epilogue, void* memory, Stream stream) {
  const LtCall call = {s, left, right, to, epilogue};
  const std::pair key(current_gpu(), call.form());
  Algorithm choice;
  {
    const std::lock_guard lock(choices().mutex);
    choice = choices().all[key];
  }
  if (choice.workspace < 0) return false;
  const cublasStatus_t status =
      LtProblem(call).multiply(choice.algorithm, memory, static_cast<size_t>(choice.workspace), stream);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    const std::lock_guard lock(choices().mutex);
    choices().all[key].workspace = -1;
    return false;
  }
  check_cublas_lt("a product", status);
  return true;
}

std::vector<ProductForm> forms() {
  std::vector<ProductForm> all;
  const int gpu = current_gpu();
  const std::lock_guard lock(choices().mutex);
  for (const auto& [key, choice] : choices().all)
    if (key.first == gpu && !choice.is_given) all.push_back(key.second);
  return all;
}

void use(const std::vector<ProductChoice>& given) {
  static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(ProductChoice::algorithm));
  const int gpu = current_gpu();
  const std::lock_guard lock(choices().mutex);
  std::erase_if(choices().all,
                [&](const auto& one) { return one.first.first == gpu && one.second.is_given; });
  for (const ProductChoice& one : given) {
    Algorithm choice = {.workspace = one.workspace, .is_given = true};
    std::memcpy(&choice.algorithm, one.algorithm.data(), sizeof choice.algorithm);
    choices().all[{gpu, one.form}] = choice;
  }
}

/// Forms say enough of addresses, which the heuristic does not follow.
ProductChoice first(const ProductForm& form) {
  const LtProblem problem(lt_call_in(form, reinterpret_cast<void*>(uintptr_t{1} << 20)));
  ProductChoice choice = {.form = form};
  if (const auto found = problem.algorithms(1); !found.empty()) {
    choice.workspace = static_cast<int64_t>(found[0].workspaceSize);
    std::memcpy(choice.algorithm.data(), &found[0].algo, sizeof found[0].algo);
  }
  return choice;
}

/// Events of a measurement.
class Stopwatch {
 public:
  Stopwatch() {
    for (cudaEvent_t* event : {&begin_, &end_}) check_status("matmul", "an event", cudaEventCreate(event));
  }
  ~Stopwatch() { cudaEventDestroy(begin_), cudaEventDestroy(end_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Returns the milliseconds of what `work` puts into the stream. Waits for it.
  template <class Work>
  float time(Stream stream, const Work& work) const {
    const auto native = static_cast<cudaStream_t>(stream);
    check_status("matmul", "a time", cudaEventRecord(begin_, native));
    work();
    check_status("matmul", "a time", cudaEventRecord(end_, native));
    check_status("matmul", "products", cudaEventSynchronize(end_));
    float ms = 0;
    check_status("matmul", "a time", cudaEventElapsedTime(&ms, begin_, end_));
    return ms;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// Returns the least time of a product over a few measurements; nothing if the library does not do it.
std::optional<float> time_of(const LtProblem& problem, const cublasLtMatmulHeuristicResult_t& candidate,
                             void* memory, Stream stream, const Stopwatch& watch) {
  constexpr int kMeasurements = 3, kProducts = 4;
  const auto multiply = [&] {
    return problem.multiply(candidate.algo, memory, candidate.workspaceSize, stream);
  };
  if (const cublasStatus_t status = multiply(); status == CUBLAS_STATUS_NOT_SUPPORTED)
    return std::nullopt;
  else
    check_cublas_lt("a product", status);
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kMeasurements; ++i)
    least = std::min(least, watch.time(stream, [&] {
      for (int product = 0; product < kProducts; ++product) check_cublas_lt("a product", multiply());
    }));
  return least;
}

ProductChoice fastest(const ProductForm& form, void* operands, void* workspace, Stream stream) {
  constexpr int kCandidates = 16;
  const LtProblem problem(lt_call_in(form, operands));
  const Stopwatch watch;
  ProductChoice best = {.form = form};
  float least = std::numeric_limits<float>::infinity();
  for (const auto& candidate : problem.algorithms(kCandidates)) {
    const std::optional<float> ms = time_of(problem, candidate, workspace, stream, watch);
    if (!ms || *ms >= least) continue;
    least = *ms, best.workspace = static_cast<int64_t>(candidate.workspaceSize);
    std::memcpy(best.algorithm.data(), &candidate.algo, sizeof candidate.algo);
  }
  return best;
}

}  // namespace

const LibraryProducts& cublas_lt_products() {
  static constexpr LibraryProducts kProducts = {.name = name,
                                                .workspace = workspace,
                                                .multiply = multiply,
                                                .forms = forms,
                                                .operand_bytes = lt_bytes,
                                                .fastest = fastest,
                                                .first = first,
                                                .use = use};
  return kProducts;
}

}  // namespace tycho::cuda
