// A product as cuBLASLt takes it, and the form by which an algorithm is chosen for it.
#pragma once
#include <cublasLt.h>

#include <vector>

#include "trainer/kernels/cuda/cublas_lt.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/library_products.h"

namespace tycho::cuda {

/// Returns the largest power of two up to 256 that divides an address.
uint32_t product_alignment(const void* data);
/// Return the bias or the sums of an epilogue, and the numbers beside its GELU; null for none.
const void* epilogue_memory(const ProductEpilogue& epilogue);
const void* gelu_memory(const ProductEpilogue& epilogue);

/// A product with its operands, by their addresses on the current GPU.
struct LtCall {
  MatmulShape shape;
  MatmulOperand left, right;
  MatmulResult to;
  ProductEpilogue epilogue;

  ProductForm form() const;
};

/// Returns the bytes that a call of that form takes: operands, result, and memory of the epilogue.
int64_t lt_bytes(const ProductForm& form);
/// Returns a call of that form whose operands lie in `memory`, lt_bytes() of it from a multiple of 256 on.
/// The term that it adds is the result itself.
LtCall lt_call_in(const ProductForm& form, void* memory);

/// Descriptors of a call.
class LtProblem {
 public:
  explicit LtProblem(const LtCall& call);

  /// Returns the heuristic's algorithms, the most promising one first; none if it knows none.
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms(int most) const;
  /// Multiplies by an algorithm.
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algorithm, void* workspace, size_t workspace_bytes,
                          Stream stream) const;

 private:
  LtCall call_;
  LtOwned<cublasLtMatmulDesc_t> product_;
  LtOwned<cublasLtMatrixLayout_t> right_, left_, result_;
};

}  // namespace tycho::cuda
