// Functions of cuBLASLt that Tycho does not call: refused by name.
#include <cstdio>

// Declared here, without their arguments: cublasLt.h is not included.
#define STANDIN_REFUSED(name)                                                                                \
  int name() {                                                                                               \
    std::fprintf(stderr, "[standin] " #name " wants an entry in tests/standin_gpu/runtime/cublas_lt.cpp\n"); \
    return 15; /* CUBLAS_STATUS_NOT_SUPPORTED */                                                             \
  }

extern "C" {
STANDIN_REFUSED(cublasLtDestroy)
STANDIN_REFUSED(cublasLtMatrixTransform)
STANDIN_REFUSED(cublasLtMatrixLayoutSetAttribute)
STANDIN_REFUSED(cublasLtMatmulDescGetAttribute)
STANDIN_REFUSED(cublasLtMatmulAlgoGetIds)
STANDIN_REFUSED(cublasLtMatmulAlgoInit)
STANDIN_REFUSED(cublasLtMatmulAlgoCheck)
STANDIN_REFUSED(cublasLtMatmulAlgoCapGetAttribute)
STANDIN_REFUSED(cublasLtMatmulAlgoConfigSetAttribute)
STANDIN_REFUSED(cublasLtMatmulAlgoConfigGetAttribute)
}  // extern "C"
