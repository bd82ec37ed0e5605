// Descriptors of products, and forms as numbers.
#include "trainer/kernels/cuda/lt_problem.h"

#include <algorithm>

namespace tycho::cuda {
namespace {

// cuBLASLt's matrices are column-major, so it computes resultᵀ = right · leftᵀ: its A is the right operand,
// its B the left one, and a column of the result is a row of its D.

cudaDataType_t lt_type(Dtype dtype) { return dtype == Dtype::kFp32 ? CUDA_R_32F : CUDA_R_16BF; }

/// Numbers of a form, in their order.
enum FormNumber : size_t {
  kRows,
  kColumns,
  kDepth,
  kLeftRowStep,
  kLeftDepthStep,
  kRightRowStep,
  kRightDepthStep,
  kLeftDtype,
  kRightDtype,
  kResultDtype,
  kEpilogue,
  kAdds,
  kLeftAlignment,
  kRightAlignment,
  kResultAlignment,
  kAddedAlignment,
  kFormNumbers
};
static_assert(kFormNumbers == std::tuple_size_v<ProductForm>);

/// True if the elements of an operand lie along the depth, row by row.
bool lies_along_depth(const MatmulOperand& operand) { return operand.depth_step == 1; }

cublasLtEpilogue_t epilogue_of(const ProductEpilogue& epilogue) {
  if (epilogue.gelu_gradient_at != nullptr) return CUBLASLT_EPILOGUE_DGELU;
  if (epilogue.gelu_input != nullptr)
    return epilogue.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (epilogue.bias != nullptr) return CUBLASLT_EPILOGUE_BIAS;
  if (epilogue.left_sums != nullptr) return CUBLASLT_EPILOGUE_BGRADB;
  return epilogue.right_sums != nullptr ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_DEFAULT;
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

LtOwned<cublasLtMatmulDesc_t> description(const LtCall& call) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas_lt("a description", cublas_lt()->create_product(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  LtOwned<cublasLtMatmulDesc_t> owned(made, cublas_lt()->destroy_product);
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
    check_cublas_lt("an attribute", cublas_lt()->set_product(made, name, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, lies_along_depth(call.right) ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, lies_along_depth(call.left) ? CUBLAS_OP_N : CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(call.epilogue));
  if (const void* memory = epilogue_memory(call.epilogue)) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory);
  if (const void* memory = gelu_memory(call.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, memory);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, call.shape.columns);
  }
  return owned;
}

int64_t width(int64_t dtype) { return dtype == static_cast<int64_t>(Dtype::kFp32) ? 4 : 2; }

/// Returns the bytes from the first to the last element of an operand whose row step is that number of the
/// form.
int64_t operand_bytes(const ProductForm& form, FormNumber rows, FormNumber row_step, FormNumber dtype) {
  const int64_t last = (form[rows] - 1) * form[row_step] + (form[kDepth] - 1) * form[row_step + 1];
  return (last + 1) * width(form[dtype]);
}

/// Memory that grows from a multiple of 256.
class Places {
 public:
  /// Returns the offset of so many bytes, a multiple of `alignment` (a power of two up to 256) and of no
  /// larger one.
  int64_t next(int64_t bytes, int64_t alignment) {
    const int64_t begin = used_ + (alignment < 256 ? alignment : 0);
    used_ = (begin + bytes + 255) / 256 * 256;
    return begin;
  }
  int64_t used() const { return used_; }

 private:
  int64_t used_ = 0;
};

bool has_gelu(const ProductForm& form) {
  return form[kEpilogue] == CUBLASLT_EPILOGUE_DGELU || form[kEpilogue] == CUBLASLT_EPILOGUE_GELU_AUX ||
         form[kEpilogue] == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

/// Offsets of a call's memory.
struct Offsets {
  int64_t left, right, result, epilogue, gelu, end;

  explicit Offsets(const ProductForm& form) {
    Places places;
    left = places.next(operand_bytes(form, kRows, kLeftRowStep, kLeftDtype), form[kLeftAlignment]);
    right = places.next(operand_bytes(form, kColumns, kRightRowStep, kRightDtype), form[kRightAlignment]);
    const int64_t result_bytes = form[kRows] * form[kColumns] * width(form[kResultDtype]);
    result = places.next(result_bytes, form[kResultAlignment]);
    gelu = places.next(has_gelu(form) ? result_bytes : 0, 256);
    epilogue = places.next(4 * std::max(form[kRows], form[kColumns]), 256);
    end = places.used();
  }
};

}  // namespace

uint32_t product_alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

const void* epilogue_memory(const ProductEpilogue& epilogue) {
  if (epilogue.bias != nullptr) return epilogue.bias;
  return epilogue.left_sums != nullptr ? epilogue.left_sums : epilogue.right_sums;
}

const void* gelu_memory(const ProductEpilogue& epilogue) {
  return epilogue.gelu_input != nullptr ? epilogue.gelu_input : epilogue.gelu_gradient_at;
}

ProductForm LtCall::form() const {
  return {shape.rows,
          shape.columns,
          shape.depth,
          left.row_step,
          left.depth_step,
          right.row_step,
          right.depth_step,
          static_cast<int64_t>(left.dtype),
          static_cast<int64_t>(right.dtype),
          static_cast<int64_t>(to.dtype),
          epilogue_of(epilogue),
          to.added != nullptr,
          product_alignment(left.data),
          product_alignment(right.data),
          product_alignment(to.data),
          product_alignment(to.added)};
}

int64_t lt_bytes(const ProductForm& form) { return Offsets(form).end; }

LtCall lt_call_in(const ProductForm& form, void* memory) {
  const Offsets at(form);
  char* const begin = static_cast<char*>(memory);
  const auto dtype = [&](FormNumber which) { return static_cast<Dtype>(form[which]); };
  LtCall call = {{form[kRows], form[kColumns], form[kDepth]},
                 {begin + at.left, dtype(kLeftDtype), form[kLeftRowStep], form[kLeftDepthStep]},
                 {begin + at.right, dtype(kRightDtype), form[kRightRowStep], form[kRightDepthStep]},
                 {begin + at.result, dtype(kResultDtype), form[kAdds] != 0 ? begin + at.result : nullptr},
                 {}};
  void* const of_epilogue = begin + at.epilogue;
  if (form[kEpilogue] == CUBLASLT_EPILOGUE_BIAS || form[kEpilogue] == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
    call.epilogue.bias = of_epilogue;
  if (form[kEpilogue] == CUBLASLT_EPILOGUE_BGRADB) call.epilogue.left_sums = static_cast<float*>(of_epilogue);
  if (form[kEpilogue] == CUBLASLT_EPILOGUE_BGRADA)
    call.epilogue.right_sums = static_cast<float*>(of_epilogue);
  void* const of_gelu = begin + at.gelu;
  if (form[kEpilogue] == CUBLASLT_EPILOGUE_DGELU)
    call.epilogue.gelu_gradient_at = of_gelu;
  else if (has_gelu(form))
    call.epilogue.gelu_input = of_gelu;
  return call;
}

LtProblem::LtProblem(const LtCall& call)
    : call_(call),
      product_(description(call)),
      right_(layout(call.right, call.shape.columns, call.shape.depth)),
      left_(layout(call.left, call.shape.rows, call.shape.depth)),
      result_(layout(call.to.dtype, call.shape.columns, call.shape.rows, call.shape.columns)) {}

std::vector<cublasLtMatmulHeuristicResult_t> LtProblem::algorithms(int most) const {
  const CublasLt& lt = *cublas_lt();
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas_lt("preferences", lt.create_preference(&made));
  const LtOwned<cublasLtMatmulPreference_t> owned(made, lt.destroy_preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    check_cublas_lt("a preference", lt.set_preference(made, name, &value, sizeof value));
  };
  const MatmulResult& to = call_.to;
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kMostProductWorkspace));
  // Parts of a sum over the depth are added in fp32, never in the result's dtype.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_alignment(call_.right.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_alignment(call_.left.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
      product_alignment(to.added != nullptr ? to.added : to.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_alignment(to.data));
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<size_t>(most));
  int count = 0;
  const cublasStatus_t status = lt.choose(cublas_lt_handle(), product_.get(), right_.get(), left_.get(),
                                          result_.get(), result_.get(), made, most, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_cublas_lt("an algorithm", status);
  found.resize(static_cast<size_t>(count));
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

cublasStatus_t LtProblem::multiply(const cublasLtMatmulAlgo_t& algorithm, void* workspace,
                                   size_t workspace_bytes, Stream stream) const {
  const MatmulResult& to = call_.to;
  const float alpha = 1, beta = to.added != nullptr ? 1 : 0;
  const void* const added = to.added != nullptr ? to.added : to.data;
  return cublas_lt()->multiply(cublas_lt_handle(), product_.get(), &alpha, call_.right.data, right_.get(),
                               call_.left.data, left_.get(), &beta, added, result_.get(), to.data,
                               result_.get(), &algorithm, workspace, workspace_bytes,
                               static_cast<cudaStream_t>(stream));
}

}  // namespace tycho::cuda
