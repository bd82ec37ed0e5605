# Fused ops: contracts and checks (kernels/*.cpp), their definition on the CPU (kernels/cpu, compiled once per instruction
# set), their twins on the GPU (kernels/cuda, in libtycho_cuda.so).
tycho_library(kernels TORCH
  SOURCES kernels/adamw_step.cpp kernels/attention.cpp kernels/cross_entropy.cpp kernels/embedding.cpp kernels/grad_norm.cpp
          kernels/kernel_table.cpp kernels/matmul.cpp kernels/rms_norm.cpp kernels/rope.cpp kernels/swiglu.cpp
  HEADERS kernels/adamw_step.h kernels/attention.h kernels/cross_entropy.h kernels/embedding.h kernels/grad_norm.h
          kernels/kernel_table.h kernels/matmul.h kernels/rms_norm.h kernels/rope.h kernels/swiglu.h kernels/tensor.h
  DEPS PUBLIC base)
