// Finds cuBLASLt among the libraries of the process, and makes a handle for each GPU.
#include "trainer/kernels/cuda/cublas_lt.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "trainer/base/error.h"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

/// Functions of the library that LibTorch depends on. By themselves first: what is loaded before a library
/// of that name stands in for it.
const CublasLt* look_up_all() {
  static CublasLt functions;
  const std::string name = fmt::format("libcublasLt.so.{}", CUDART_VERSION / 1000);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  bool complete = true;
  const auto find = [&]<class F>(const char* function, F*& to) {
    void* found = dlsym(RTLD_DEFAULT, function);
    if (found == nullptr && library != nullptr) found = dlsym(library, function);
    to = reinterpret_cast<F*>(found);
    complete = complete && found != nullptr;
  };
  CublasLt& f = functions;
  find("cublasLtCreate", f.create), find("cublasLtGetVersion", f.version);
  find("cublasLtGetStatusString", f.text_of);
  find("cublasLtMatmulDescCreate", f.create_product), find("cublasLtMatmulDescDestroy", f.destroy_product);
  find("cublasLtMatmulDescSetAttribute", f.set_product);
  find("cublasLtMatrixLayoutCreate", f.create_layout), find("cublasLtMatrixLayoutDestroy", f.destroy_layout);
  find("cublasLtMatmulPreferenceCreate", f.create_preference);
  find("cublasLtMatmulPreferenceDestroy", f.destroy_preference);
  find("cublasLtMatmulPreferenceSetAttribute", f.set_preference);
  find("cublasLtMatmulAlgoGetHeuristic", f.choose), find("cublasLtMatmul", f.multiply);
  return complete ? &functions : nullptr;
}

}  // namespace

const CublasLt* cublas_lt() {
  static const CublasLt* const library = look_up_all();
  return library;
}

const std::string& cublas_lt_version() {
  static const std::string text = [] {
    if (cublas_lt() == nullptr) return std::string();
    const size_t version = cublas_lt()->version();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }();
  return text;
}

cublasLtHandle_t cublas_lt_handle() {
  static std::mutex mutex;
  static auto* const handles = new std::map<int, cublasLtHandle_t>;
  int device = 0;
  check_status("matmul", "a current GPU", cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = (*handles)[device];
  if (handle == nullptr) check_cublas_lt("a handle", cublas_lt()->create(&handle));
  return handle;
}

void check_cublas_lt(const char* wanted, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ExitCode::kFailure,
       "[matmul] expected {} of cuBLASLt {}, got: {}. TYCHO_GEMM=aten multiplies without it", wanted,
       cublas_lt_version(), cublas_lt()->text_of(status));
}

}  // namespace tycho::cuda
