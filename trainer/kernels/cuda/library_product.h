// Products by cuBLASLt.
#pragma once
#include "trainer/kernels/twins/library_products.h"

namespace tycho::cuda {

const LibraryProducts& cublas_lt_products();

}  // namespace tycho::cuda
