// The rows of a norm on the GPU: their additions, and their casts to fp8.
#pragma once
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/fp8_codes.cuh"

namespace tycho::cuda {

/// Additions and casts of a norm.
enum class NormForm { kPlain, kAddBefore, kAddAfter, kCast, kAddBeforeAndCast };
__host__ __device__ constexpr bool adds_before(NormForm form) {
  return form == NormForm::kAddBefore || form == NormForm::kAddBeforeAndCast;
}
__host__ __device__ constexpr bool makes_casts(NormForm form) {
  return form == NormForm::kCast || form == NormForm::kAddBeforeAndCast;
}

/// Additions and casts of a norm's rows, of dtype T.
template <class T>
struct NormRows {
  const T* before;
  T* sum;
  const T* after;
  CastRows casts;

  NormRows(const NormAdds& adds, const CastRows& casts)
      : before(static_cast<const T*>(adds.before)),
        sum(static_cast<T*>(adds.sum)),
        after(static_cast<const T*>(adds.after)),
        casts(casts) {}
};

/// Adds the pack at p to x, both rounded to T; the sums are not contracted with products.
template <int width, class T>
__device__ inline void add_pack(const T* p, Pack<float, width>& x) {
  const auto more = load<width>(p);
#pragma unroll
  for (int k = 0; k < width; ++k)
    x.at[k] = to_float(from_float<T>(__fadd_rn(to_float(from_float<T>(x.at[k])), more.at[k])));
}

/// Returns a pack of the norm's input, and writes a sum. x, i: the row, and an element of it.
template <NormForm form, int width, class T>
__device__ inline Pack<float, width> norm_input(const NormRows<T>& rows, int64_t first, const T* x,
                                                int64_t i) {
  auto value = load<width>(x + i);
  if constexpr (adds_before(form)) {
    add_pack<width>(rows.before + first + i, value);
    store<width>(rows.sum + first + i, value);
  }
  return value;
}

/// Writes the result of a row that begins at element `first` of contiguous rows, given packs of it:
/// norm_at(i). A warp per row.
template <NormForm form, int width, class T, class NormAt>
__device__ inline void write_normed(const NormRows<T>& rows, int64_t dim, int64_t row, T* y,
                                    const NormAt& norm_at) {
  uint32_t most = 0;
  for (int64_t i = threadIdx.x * width; i < dim; i += kWarp * width) {
    auto value = norm_at(i);
    if constexpr (form == NormForm::kAddAfter) add_pack<width>(rows.after + row * dim + i, value);
    if constexpr (makes_casts(form)) {
      value = as_bf16(value);
      most = larger_of(most, largest_of(value));
    }
    store<width>(y + i, value);
  }
  if constexpr (makes_casts(form))
    cast_row_at<width>(dim, row, warp_max(most), rows.casts, [&](int64_t i) { return as_bf16(norm_at(i)); });
}

template <NormForm value>
struct FormOf {
  static constexpr NormForm form = value;
};
/// Calls body(FormOf<form>). fp32 has no casts.
template <class T, class Body>
void with_form(const NormAdds& adds, const CastRows& casts, const Body& body) {
  if constexpr (sizeof(T) == sizeof(__nv_bfloat16))
    if (casts.codes || casts.amax_R)
      return adds.before ? body(FormOf<NormForm::kAddBeforeAndCast>{}) : body(FormOf<NormForm::kCast>{});
  if (adds.before)
    body(FormOf<NormForm::kAddBefore>{});
  else if (adds.after)
    body(FormOf<NormForm::kAddAfter>{});
  else
    body(FormOf<NormForm::kPlain>{});
}

}  // namespace tycho::cuda
