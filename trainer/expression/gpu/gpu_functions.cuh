// The text before the kernel of every program, compiled by NVRTC without contraction: the functions of
// kernels/cpu on one element, to the bit, and how arrays are read and written.

namespace tycho::gpu_program {

__device__ inline int bits_of(float x) { return __float_as_int(x); }
__device__ inline float from_bits(int bits) { return __int_as_float(bits); }
__device__ inline float infinity() { return from_bits(0x7f800000); }

/// Booleans are 32 equal bits.
__device__ inline float mask_of(bool yes) { return from_bits(yes ? -1 : 0); }
__device__ inline float both(float a, float b) { return from_bits(bits_of(a) & bits_of(b)); }
__device__ inline float either(float a, float b) { return from_bits(bits_of(a) | bits_of(b)); }
__device__ inline float none(float a) { return from_bits(~bits_of(a)); }
__device__ inline float choose(float mask, float yes, float no) { return bits_of(mask) != 0 ? yes : no; }

__device__ inline float magnitude(float x) { return from_bits(bits_of(x) & 0x7fffffff); }
/// Returns `size` with the sign of `sign`. Requires size >= 0.
__device__ inline float with_sign(float size, float sign) {
  return from_bits(bits_of(size) | (bits_of(sign) & static_cast<int>(0x80000000u)));
}
__device__ inline float sign_of(float x) { return x == x ? (x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f) : x; }
/// Returns the second of two equal zeros, and NaN from either side.
__device__ inline float smaller_of(float x, float y) { return x < y || x != x ? x : y; }
__device__ inline float larger_of(float x, float y) { return x > y || x != x ? x : y; }
__device__ inline float bounded_by(float low, float x, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/// Returns first xⁿ + … + last, each product rounded with its sum.
template <class... Rest>
__device__ inline float polynomial(float x, float p, Rest... rest) {
  ((p = __fmaf_rn(p, x, rest)), ...);
  return p;
}

/// x = n ln 2 + r with |r| <= ln 2 / 2.
struct Reduced {
  float r;
  int exponent;  // n

  __device__ explicit Reduced(float x) {
    const float round = 12582912.0f, shifted = __fmaf_rn(x, 1.44269504f, round), n = shifted - round;
    r = __fmaf_rn(n, 2.12194440e-4f, __fmaf_rn(n, -0.693359375f, x));
    exponent = bits_of(shifted) - 0x4b400000;
  }
  /// Returns e^r - 1.
  __device__ float power_minus_1() const {
    const float p = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                               1.6666665459e-1f, 5.0000001201e-1f);
    return __fmaf_rn(p, r * r, r);
  }
};
__device__ inline float power_of_two(int n) { return __uint_as_float(static_cast<unsigned>(n + 127) << 23); }

/// e^x over the whole range of fp32.
__device__ inline float wide_exp(float x) {
  x = bounded_by(-104.5f, x, 89.5f);
  const Reduced reduced(x);
  const int half = reduced.exponent >> 1;
  return (reduced.power_minus_1() + 1.0f) * power_of_two(half) * power_of_two(reduced.exponent - half);
}

__device__ inline float logarithm(float x) {
  if (!(x > 0.0f && x < infinity())) return x == 0.0f ? -infinity() : x < 0.0f ? from_bits(0x7fc00000) : x;
  const bool tiny = x < 1.17549435e-38f;
  const int normal = bits_of(tiny ? x * 8388608.0f : x), exponent = (normal - 0x3f3504f3) >> 23;
  const float n = static_cast<float>(exponent - (tiny ? 23 : 0));
  const float f = from_bits(normal - exponent * 0x800000) - 1.0f;
  const float p = polynomial(f, 0.0674663857f, -0.1167565137f, 0.1188816279f, -0.1240558922f, 0.1421955228f,
                             -0.1666799635f, 0.2000211924f, -0.2500000894f, 0.3333331346f);
  const float square = f * f, cubes = __fmaf_rn(f * square, p, n * -2.12194440e-4f);
  const float rest = __fmaf_rn(square, -0.5f, cubes);
  return __fmaf_rn(n, 0.693359375f, f + rest);
}

__device__ inline float logistic(float x) { return 1.0f / (1.0f + wide_exp(-x)); }

/// tanh |x| = u / (u + 2) with u = e^2|x| - 1.
__device__ inline float hyperbolic_tangent(float x) {
  const float twice = magnitude(x) + magnitude(x), t = twice > 20.0f ? 20.0f : twice;
  const Reduced reduced(t);
  const float power = power_of_two(reduced.exponent);
  const float u = __fmaf_rn(power, reduced.power_minus_1(), power - 1.0f);
  return with_sign(u / (u + 2.0f), x);
}

__device__ inline float error_function(float x) {
  const float size = magnitude(x), square = x * x, t = size > 4.1f ? 4.1f : size;
  if (x != x) return x;
  if (size < 1.0f) {
    const float near = polynomial(square, -5.631425301e-4f, 4.917552229e-3f, -2.671131119e-2f, 1.128018e-1f,
                                  -3.761232495e-1f, 1.283791214e-1f);
    return __fmaf_rn(near, x, x);
  }
  const float far = polynomial(t, -3.973599232e-4f, 6.111732684e-3f, -4.156049341e-2f, 1.657465845e-1f,
                               -4.343977273e-1f, 7.952871919e-1f, -1.049662948f, 9.86456573e-1f);
  return with_sign(__fmaf_rn(-wide_exp(-square), far, 1.0f), x);
}

/// torch.pow has its own formulas for one exponent of all elements.
__device__ inline float power_by(float x, float y) {
  if (y == 1.0f) return x;
  if (y == 2.0f) return x * x;
  if (y == 3.0f) return x * x * x;
  if (y == 0.5f) return sqrtf(x);
  if (y == -0.5f) return 1.0f / sqrtf(x);
  if (y == -1.0f) return 1.0f / x;
  if (y == -2.0f) return 1.0f / (x * x);
  return powf(x, y);
}

struct Bf16 {
  unsigned short bits;
};
__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(Bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ inline Bf16 upper_half(float x, unsigned added) {
  const unsigned bits = __float_as_uint(x);
  return {static_cast<unsigned short>((x == x ? bits + added : bits | 0x400000u) >> 16)};
}
__device__ inline void put(float x, float& to) { to = x; }
__device__ inline void put(float x, Bf16& to) {
  to = upper_half(x, 0x7fffu + (__float_as_uint(x) >> 16 & 1u));
}

template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T at[width];
};

template <class T, int width>
__device__ inline void read(const GpuArrayMemory& array, long long row, long long at, float (&to)[width]) {
  const T* const data = static_cast<const T*>(array.data) + row * array.row_step + at;
  const Pack<T, width> raw = *reinterpret_cast<const Pack<T, width>*>(data);
#pragma unroll
  for (int k = 0; k < width; ++k) to[k] = to_float(raw.at[k]);
}
/// One number for the whole row.
template <class T, int width>
__device__ inline void read_number(const GpuArrayMemory& array, long long row, float (&to)[width]) {
  const float number = to_float(static_cast<const T*>(array.data)[row * array.row_step]);
#pragma unroll
  for (int k = 0; k < width; ++k) to[k] = number;
}
template <class T, int width>
__device__ inline void write(const float (&x)[width], const GpuArrayMemory& array, long long row,
                             long long at) {
  Pack<T, width> raw;
#pragma unroll
  for (int k = 0; k < width; ++k) put(x[k], raw.at[k]);
  *reinterpret_cast<Pack<T, width>*>(static_cast<T*>(array.data) + row * array.row_step + at) = raw;
}

/// Philox 4x32-10 of (key, block, step).
__device__ inline void noise_words(const GpuRun& run, unsigned long long block, unsigned (&words)[4]) {
  unsigned k0 = static_cast<unsigned>(run.key), k1 = static_cast<unsigned>(run.key >> 32);
  unsigned c0 = static_cast<unsigned>(block), c1 = static_cast<unsigned>(block >> 32);
  unsigned c2 = static_cast<unsigned>(run.step), c3 = static_cast<unsigned>(run.step >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    c0 = static_cast<unsigned>(b >> 32) ^ c1 ^ k0, c1 = static_cast<unsigned>(b);
    c2 = static_cast<unsigned>(a >> 32) ^ c3 ^ k1, c3 = static_cast<unsigned>(a);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}
__device__ inline long long whole_element(const GpuRuns& place, long long i) {
  const long long at = place.first + i;
  if (place.row == 0) return at;
  const long long inside = at % place.row;
  int run = 0;
  while (run + 1 < 4 && place.here[run + 1] <= inside) ++run;
  return at / place.row * place.whole_row + place.there[run] + inside - place.here[run];
}
/// Rounds up with the probability of what would be cut off.
template <int width>
__device__ inline void write_stochastic(const float (&x)[width], const GpuArrayMemory& array,
                                        const GpuRun& run, long long at) {
  Pack<Bf16, width> raw;
  unsigned words[4];
  long long block = -1;  // of the words
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const long long e = whole_element(run.place, at + k);
    if (e / 8 != block) {
      block = e / 8;
      noise_words(run, static_cast<unsigned long long>(block), words);
    }
    const int half = static_cast<int>(e % 8);
    const unsigned low = half < 2 ? words[0] : words[1], high = half < 6 ? words[2] : words[3];
    raw.at[k] = upper_half(x[k], (half < 4 ? low : high) >> (half % 2 * 16) & 0xffffu);
  }
  *reinterpret_cast<Pack<Bf16, width>*>(static_cast<Bf16*>(array.data) + at) = raw;
}

/// Runs the program on every element, `width` at a time.
template <int width, class Program>
__device__ inline void over_elements(const Program& program) {
  const long long packs = program.run.dim / width, n = program.run.rows * packs;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    const long long row = program.run.rows == 1 ? 0 : i / packs;
    program.template elements<width>(row, (i - row * packs) * width);
  }
}

}  // namespace tycho::gpu_program
