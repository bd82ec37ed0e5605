// The CPU kernels of one instruction set; contracts in kernels/<op>.h, roles in kernel_table.h.
#pragma once
#include "trainer/kernels/kernel_table.h"

namespace tycho::TYCHO_ISA {

const KernelTable& table();

void rms_norm(RowsShape, Dtype, const void* x, const void* weight, float eps, void* y, float* inv_rms,
              Stream);
void rms_norm_backward(RowsShape, Dtype, const void* x, const void* weight, const float* inv_rms,
                       const void* dy, void* dx, bool add_to_dx, float* dweight, bool add_to_dweight,
                       float* workspace, Stream);
int64_t rms_norm_backward_workspace(RowsShape);
void swiglu(RowsShape, Dtype, const void* gate_up, void* y, Stream);
void swiglu_backward(RowsShape, Dtype, const void* gate_up, const void* dy, void* dgate_up, void* y, Stream);
void rope(RopeShape, Dtype, const float* cos_sin, bool inverse, void* qkv, Stream);
void embedding(RowsShape, Dtype, const int32_t* tokens, const void* table, void* y, Stream);
void embedding_backward(RowsShape, Dtype, const int32_t* tokens, int64_t vocab, const void* dy, float* dtable,
                        void* workspace, Stream);
int64_t embedding_backward_workspace(RowsShape, int64_t vocab);
void cross_entropy(RowsShape, Dtype, void* logits, const int32_t* targets, const float* weight,
                   bool write_gradient, float* loss, Stream);
void adamw_step(int64_t n, AdamWScalars, const float* grad_scale, Dtype, void* params, float* master,
                const float* grads, float* m, float* v, Stream);
void sum_of_squares(int64_t n, const float* x, double* sum, Stream);
void cast(int64_t n, Dtype from, const void* x, Dtype to, void* y, Stream);
void add_to_fp32(int64_t n, Dtype, const void* x, float* y, Stream);

}  // namespace tycho::TYCHO_ISA
