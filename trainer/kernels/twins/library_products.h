// Products by the library of a GPU, as the engine sees it. Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Work that the library does along with a product. Null pointers stand for nothing; one is set at most, or a
/// bias and gelu_input.
struct ProductEpilogue {
  const void* bias = nullptr;   // of the result's dtype: a number for each column, which is added
  float* left_sums = nullptr;   // sums of the left operand over the depth, one for each row
  float* right_sums = nullptr;  // the same of the right operand
  // Receives product + bias, in the result's shape and dtype; the result is then gelu_tanh of them.
  void* gelu_input = nullptr;
  // Gives backward those numbers: the product is multiplied by the derivative of gelu_tanh at them.
  const void* gelu_gradient_at = nullptr;
};

/// Numbers by which an algorithm is chosen: dims, steps, dtypes, alignments, epilogue.
using ProductForm = std::array<int64_t, 16>;
inline constexpr int64_t kMostProductWorkspace = 32 << 20;  // what NVIDIA advises for Hopper

/// Algorithm of a form, as the library of one version writes it.
struct ProductChoice {
  ProductForm form = {};
  std::array<uint64_t, 8> algorithm = {};
  int64_t workspace = -1;  // bytes; -1: the library has no algorithm
};

/// Functions of libtycho_cuda.so. They use the current GPU, and, but for `fastest`, neither wait nor allocate
/// on it.
struct LibraryProducts {
  /// Returns name and version, as "cuBLASLt 13.1.0"; "" if the library is not there.
  const char* (*name)() = nullptr;
  /// Returns the number of bytes of workspace for a product; -1 if the library has no algorithm for one of
  /// this form, or is not there.
  int64_t (*workspace)(MatmulShape, MatmulOperand left, MatmulOperand right, MatmulResult,
                       ProductEpilogue) = nullptr;
  /// Sums in fp32 and rounds once, with the algorithm that `workspace` chose. Returns false if it turned out
  /// not to do it; nothing was done then.
  bool (*multiply)(MatmulShape, MatmulOperand left, MatmulOperand right, MatmulResult, ProductEpilogue,
                   void* workspace, Stream) = nullptr;

  /// Returns the forms that `workspace` was asked for and that `use` gave no algorithm for.
  std::vector<ProductForm> (*forms)() = nullptr;
  /// Returns the number of bytes of a form's operands and results.
  int64_t (*operand_bytes)(const ProductForm&) = nullptr;
  /// Times the algorithms that the library proposes, with operands in memory at a multiple of 256, whose
  /// numbers do not matter, and kMostProductWorkspace bytes of workspace. Returns the fastest. Waits for the
  /// stream.
  ProductChoice (*fastest)(const ProductForm&, void* operands, void* workspace, Stream) = nullptr;
  /// Returns the algorithm that the library proposes first.
  ProductChoice (*first)(const ProductForm&) = nullptr;
  /// Takes these algorithms for their forms from now on, instead of those of earlier calls.
  void (*use)(const std::vector<ProductChoice>&) = nullptr;
};

/// Sets the library. Passed to the CUDA plug-in's tycho_cuda_init, which calls it.
void set_library_products(const LibraryProducts* products);
/// Returns the library, null before a plug-in is open.
const LibraryProducts* library_products();

}  // namespace tycho
