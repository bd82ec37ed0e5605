// The functions of CUDA's runtime that kernels are launched with, done by the emulator.
#pragma once
#include <cstddef>

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorLaunchFailure = 719 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
using cudaStream_t = struct CUstream_st*;

/// The first error since the last call, which forgets it.
cudaError_t cudaGetLastError();
/// Of the error that was asked for last: what the emulator found.
const char* cudaGetErrorString(cudaError_t status);

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
