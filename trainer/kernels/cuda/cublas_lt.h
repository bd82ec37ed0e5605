// cuBLASLt by its C functions, looked up by name: neither this library nor its users need it to be there.
#pragma once
#include <cublasLt.h>

#include <memory>
#include <string>
#include <type_traits>

namespace tycho::cuda {

struct CublasLt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) text_of = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
};

/// Returns the library that LibTorch brought along; null when it is not there or lacks a function.
const CublasLt* cublas_lt();
/// Returns its version, as "13.1.0"; "" without it.
const std::string& cublas_lt_version();
/// Returns the handle of the current GPU, which lives as long as the process.
cublasLtHandle_t cublas_lt_handle();
/// Throws Error (kFailure) "[matmul] cuBLASLt …" unless the call succeeded.
void check_cublas_lt(const char* wanted, cublasStatus_t status);

/// Descriptor that the library destroys.
template <class T>
using LtOwned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

}  // namespace tycho::cuda
