// Products by cuBLASLt, with what it does along with them. The algorithm is the first that its heuristic
// names, once for each form and GPU.
#include "trainer/kernels/cuda/library_product.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "trainer/kernels/cuda/cublas_lt.h"
#include "trainer/kernels/cuda/status.h"

namespace tycho::cuda {
namespace {

constexpr uint64_t kMostWorkspace = 32 << 20;  // what NVIDIA advises for Hopper
constexpr uint32_t kBiasAlignment = 16;

// cuBLASLt's matrices are column-major, so it computes resultᵀ = right · leftᵀ: its A is the right operand,
// its B the left one, and a column of the result is a row of its D.

cudaDataType_t lt_type(Dtype dtype) { return dtype == Dtype::kFp32 ? CUDA_R_32F : CUDA_R_16BF; }

/// Largest power of two up to 256 that divides an address.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

/// True if the elements of an operand lie along the depth, row by row.
bool lies_along_depth(const MatmulOperand& operand) { return operand.depth_step == 1; }

cublasLtEpilogue_t epilogue_of(const ProductEpilogue& epilogue) {
  if (epilogue.bias != nullptr) return CUBLASLT_EPILOGUE_BIAS;
  if (epilogue.left_sums != nullptr) return CUBLASLT_EPILOGUE_BGRADB;
  return epilogue.right_sums != nullptr ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_DEFAULT;
}

/// Memory that the epilogue reads or writes; null for none.
const void* epilogue_memory(const ProductEpilogue& epilogue) {
  if (epilogue.bias != nullptr) return epilogue.bias;
  return epilogue.left_sums != nullptr ? epilogue.left_sums : epilogue.right_sums;
}

/// Columns are `step` elements apart; of one column that is any number.
LtOwned<cublasLtMatrixLayout_t> layout(Dtype dtype, int64_t rows, int64_t columns, int64_t step) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas_lt("a layout",
                  cublas_lt()->create_layout(&made, lt_type(dtype), static_cast<uint64_t>(rows),
                                             static_cast<uint64_t>(columns), columns == 1 ? rows : step));
  return {made, cublas_lt()->destroy_layout};
}

LtOwned<cublasLtMatrixLayout_t> layout(const MatmulOperand& operand, int64_t rows, int64_t depth) {
  return lies_along_depth(operand) ? layout(operand.dtype, depth, rows, operand.row_step)
                                   : layout(operand.dtype, rows, depth, operand.depth_step);
}

LtOwned<cublasLtMatmulDesc_t> description(const MatmulOperand& left, const MatmulOperand& right,
                                          const ProductEpilogue& epilogue) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas_lt("a description", cublas_lt()->create_product(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  LtOwned<cublasLtMatmulDesc_t> owned(made, cublas_lt()->destroy_product);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
    check_cublas_lt("an attribute", cublas_lt()->set_product(made, name, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, lies_along_depth(right) ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, lies_along_depth(left) ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(epilogue));
  if (const void* memory = epilogue_memory(epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory);
  return owned;
}

/// A product as the library takes it.
struct Problem {
  LtOwned<cublasLtMatmulDesc_t> product;
  LtOwned<cublasLtMatrixLayout_t> right, left, result;

  Problem(const MatmulShape& s, const MatmulOperand& left_operand, const MatmulOperand& right_operand,
          const MatmulResult& to, const ProductEpilogue& epilogue)
      : product(description(left_operand, right_operand, epilogue)),
        right(layout(right_operand, s.columns, s.depth)),
        left(layout(left_operand, s.rows, s.depth)),
        result(layout(to.dtype, s.columns, s.rows, s.columns)) {}
};

/// Asks the heuristic; nothing if it knows no algorithm.
std::optional<cublasLtMatmulHeuristicResult_t> choose(const Problem& problem, const MatmulOperand& left,
                                                      const MatmulOperand& right, const MatmulResult& to) {
  const CublasLt& lt = *cublas_lt();
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas_lt("preferences", lt.create_preference(&made));
  const LtOwned<cublasLtMatmulPreference_t> owned(made, lt.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    check_cublas_lt("a preference", lt.set_preference(made, name, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  // Parts of a sum over the depth are added in fp32, never in the result's dtype.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(right.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(left.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(to.added != nullptr ? to.added : to.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(to.data));
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status =
      lt.choose(cublas_lt_handle(), problem.product.get(), problem.right.get(), problem.left.get(),
                problem.result.get(), problem.result.get(), made, 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0))
    return std::nullopt;
  check_cublas_lt("an algorithm", status);
  if (found.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return found;
}

/// Key by which algorithms are chosen.
using Form = std::array<int64_t, 17>;
Form lt_form(const MatmulShape& s, const MatmulOperand& left, const MatmulOperand& right,
             const MatmulResult& to, const ProductEpilogue& epilogue) {
  int device = 0;
  check_status("matmul", "a current GPU", cudaGetDevice(&device));
  return {device,
          s.rows,
          s.columns,
          s.depth,
          left.row_step,
          left.depth_step,
          right.row_step,
          right.depth_step,
          static_cast<int64_t>(left.dtype),
          static_cast<int64_t>(right.dtype),
          static_cast<int64_t>(to.dtype),
          epilogue_of(epilogue),
          to.added != nullptr,
          alignment_of(left.data),
          alignment_of(right.data),
          alignment_of(to.data),
          alignment_of(to.added)};
}

struct Choices {
  std::mutex mutex;
  std::map<Form, std::optional<cublasLtMatmulHeuristicResult_t>> all;
};
Choices& choices() {
  static auto* const made = new Choices;
  return *made;
}

std::optional<cublasLtMatmulHeuristicResult_t> choice_of(const Form& form) {
  const std::lock_guard lock(choices().mutex);
  const auto found = choices().all.find(form);
  return found == choices().all.end() ? std::nullopt : found->second;
}

const char* name() {
  static const std::string name = cublas_lt() == nullptr ? "" : "cuBLASLt " + cublas_lt_version();
  return name.c_str();
}

int64_t workspace(MatmulShape s, MatmulOperand left, MatmulOperand right, MatmulResult to,
                  ProductEpilogue epilogue) {
  if (cublas_lt() == nullptr || s.rows == 0 || s.columns == 0 || s.depth == 0) return -1;
  if (alignment_of(epilogue_memory(epilogue)) < kBiasAlignment) return -1;
  const Form form = lt_form(s, left, right, to, epilogue);
  const std::lock_guard lock(choices().mutex);
  auto found = choices().all.find(form);
  if (found == choices().all.end())
    found = choices().all.emplace(form, choose(Problem(s, left, right, to, epilogue), left, right, to)).first;
  return found->second ? static_cast<int64_t>(found->second->workspaceSize) : -1;
}

bool multiply(MatmulShape s, MatmulOperand left, MatmulOperand right, MatmulResult to,
              ProductEpilogue epilogue, void* memory, Stream stream) {
  const Form form = lt_form(s, left, right, to, epilogue);
  const auto choice = choice_of(form);
  if (!choice) return false;
  const Problem problem(s, left, right, to, epilogue);
  const float alpha = 1, beta = to.added != nullptr ? 1 : 0;
  const void* const added = to.added != nullptr ? to.added : to.data;
  const cublasStatus_t status = cublas_lt()->multiply(
      cublas_lt_handle(), problem.product.get(), &alpha, right.data, problem.right.get(), left.data,
      problem.left.get(), &beta, added, problem.result.get(), to.data, problem.result.get(), &choice->algo,
      memory, choice->workspaceSize, static_cast<cudaStream_t>(stream));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    const std::lock_guard lock(choices().mutex);
    choices().all[form] = std::nullopt;
    return false;
  }
  check_cublas_lt("a product", status);
  return true;
}

}  // namespace

const LibraryProducts& cublas_lt_products() {
  static constexpr LibraryProducts kProducts = {.name = name, .workspace = workspace, .multiply = multiply};
  return kProducts;
}

}  // namespace tycho::cuda
