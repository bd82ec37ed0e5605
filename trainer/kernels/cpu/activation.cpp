// Activations on the CPU, alone, after a bias and gated, one pass each.
#include "trainer/kernels/cpu/elementary.h"
#include "trainer/kernels/cpu/fp8_codes.h"
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/partials.h"

namespace tycho::TYCHO_ISA {
namespace {

struct Curve {
  Vec value, slope;
};

struct Gelu {
  static Curve at(Vec x) {
    const Normal n = normal(x);
    return {x * n.cdf, fused_multiply_add(x, n.density, n.cdf)};
  }
};
/// Returns x sigmoid(g), whose slope is s + x s (1 - s) g'.
TYCHO_SIMD Curve through_sigmoid(Vec x, Vec g, Vec g_slope) {
  const Vec s = sigmoid(g), value = x * s;
  return {value, fused_multiply_add(value * (1.0f - s), g_slope, s)};
}
/// (1 + tanh(u)) / 2 is sigmoid(2 u), here with u = sqrt(2 / pi) (x + 0.044715 x³).
struct GeluTanh {
  static Curve at(Vec x) {
    constexpr float kScale = 1.59576912f, kCubic = 0.0713548163f;
    const Vec square = x * x;
    return through_sigmoid(x, x * fused_multiply_add(square, kCubic, kScale),
                           fused_multiply_add(square, 3.0f * kCubic, kScale));
  }
};
struct QuickGelu {
  static Curve at(Vec x) { return through_sigmoid(x, x * 1.702f, broadcast(1.702f)); }
};
struct Silu {
  static Curve at(Vec x) {
    const Vec s = sigmoid(x), value = x * s;
    return {value, fused_multiply_add(value, 1.0f - s, s)};
  }
};
struct Relu {
  static Curve at(Vec x) { return {at_least(Vec{}, x), x > 0.0f ? broadcast(1.0f) : Vec{}}; }
};

/// Calls body with the curve of that kind.
template <class Body>
TYCHO_SIMD void with_curve(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::kGelu: return body(Gelu{});
    case Activation::kGeluTanh: return body(GeluTanh{});
    case Activation::kQuickGelu: return body(QuickGelu{});
    case Activation::kRelu: return body(Relu{});
    case Activation::kSilu: return body(Silu{});
  }
}

template <class T, class F>
void forward(int64_t n, const T* x, T* y) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      store(y + i, F::at(load(x + i, lanes)).value, lanes);
    });
  });
}

template <class T, class F>
void backward(int64_t n, const T* x, const T* dy, T* dx, T* y) {
  for_row_blocks(n, 1, [&](int64_t first, int64_t count) {
    for_lanes(count, [&](int64_t offset, auto lanes) {
      const int64_t i = first + offset;
      const Vec d = load(dy + i, lanes);
      const Curve f = F::at(load(x + i, lanes));
      store(y + i, f.value, lanes);
      store(dx + i, d * f.slope, lanes);
    });
  });
}

template <class T, class F>
void bias_forward(RowsShape shape, const T* bias, const T* x, T* y) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const T* in = x + row * shape.dim;
      T* out = y + row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        store(out + i, F::at(load(in + i, lanes) + load(bias + i, lanes)).value, lanes);
      });
    }
  });
}

template <class T, class F>
void bias_backward(RowsShape shape, const T* bias, const T* x, const T* dy, T* dx, T* y, float* partials) {
  for_partials(shape.rows, shape.dim, [&](int64_t partial, int64_t first, int64_t end) {
    float* sums = partials + partial * shape.dim;
    __builtin_memset(sums, 0, shape.dim * sizeof(float));
    for (int64_t row = first; row < end; ++row) {
      const int64_t at = row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        const Curve f = F::at(load(x + at + i, lanes) + load(bias + i, lanes));
        const Vec d = load(dy + at + i, lanes) * f.slope;
        store(y + at + i, f.value, lanes);
        store(dx + at + i, d, lanes);
        store(sums + i, load(sums + i, lanes) + d, lanes);
      });
    }
  });
}

template <class T, class F>
void gated_forward(RowsShape shape, const T* gate_up, T* y) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const T* gate = gate_up + row * 2 * shape.dim;
      const T* up = gate + shape.dim;
      T* out = y + row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        store(out + i, F::at(load(gate + i, lanes)).value * load(up + i, lanes), lanes);
      });
    }
  });
}

template <class T, class F>
void gated_backward(RowsShape shape, const T* gate_up, const T* dy, T* dgate_up, T* y) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const int64_t gate = row * 2 * shape.dim, up = gate + shape.dim, out = row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        const Vec u = load(gate_up + up + i, lanes), d = load(dy + out + i, lanes);
        const Curve f = F::at(load(gate_up + gate + i, lanes));
        store(y + out + i, f.value * u, lanes);
        store(dgate_up + gate + i, d * u * f.slope, lanes);
        store(dgate_up + up + i, d * f.value, lanes);
      });
    }
  });
}

template <class F>
void casts_forward(RowsShape shape, bool gated, const Bf16* bias, const Bf16* x, Bf16* y,
                   const CastRows& casts) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const Bf16* in = x + row * shape.dim * (gated ? 2 : 1);
      const auto row_at = [&](int64_t i, auto lanes) {
        Vec z = load(in + i, lanes);
        if (bias) z += load(bias + i, lanes);
        z = F::at(z).value;
        if (gated) z *= load(in + shape.dim + i, lanes);
        return widen(narrow(z));
      };
      cast_row_at(shape.dim, row, casts, row_at);
      if (y)
        for_lanes(shape.dim,
                  [&](int64_t i, auto lanes) { store(y + row * shape.dim + i, row_at(i, lanes), lanes); });
    }
  });
}

/// Calls body(null of the dtype's type, the curve).
template <class Body>
TYCHO_SIMD void with_type_and_curve(Dtype dtype, Activation kind, const Body& body) {
  with_curve(kind, [&](auto curve) {
    if (dtype == Dtype::kFp32)
      body(static_cast<float*>(nullptr), curve);
    else
      body(static_cast<Bf16*>(nullptr), curve);
  });
}

}  // namespace

void activation(int64_t n, Dtype dtype, Activation kind, const void* x, void* y, Stream) {
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    forward<T, F>(n, static_cast<const T*>(x), static_cast<T*>(y));
  });
}

void activation_backward(int64_t n, Dtype dtype, Activation kind, const void* x, const void* dy, void* dx,
                         void* y, Stream) {
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    backward<T, F>(n, static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx),
                   static_cast<T*>(y));
  });
}

void bias_activation(RowsShape shape, Dtype dtype, Activation kind, const void* bias, const void* x, void* y,
                     Stream) {
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    bias_forward<T, F>(shape, static_cast<const T*>(bias), static_cast<const T*>(x), static_cast<T*>(y));
  });
}

int64_t bias_activation_backward_workspace(RowsShape shape) { return num_partials(shape.rows) * shape.dim; }

void bias_activation_backward(RowsShape shape, Dtype dtype, Activation kind, const void* bias, const void* x,
                              const void* dy, void* dx, void* y, float* dbias, bool add_to_dbias,
                              float* workspace, Stream) {
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    bias_backward<T, F>(shape, static_cast<const T*>(bias), static_cast<const T*>(x),
                        static_cast<const T*>(dy), static_cast<T*>(dx), static_cast<T*>(y), workspace);
  });
  if (dbias) add_partials(shape.dim, workspace, num_partials(shape.rows), dbias, add_to_dbias);
}

void gated_activation(RowsShape shape, Dtype dtype, Activation kind, const void* gate_up, void* y, Stream) {
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    gated_forward<T, F>(shape, static_cast<const T*>(gate_up), static_cast<T*>(y));
  });
}

void activation_casts(RowsShape shape, Activation kind, bool gated, const void* bias, const void* x, void* y,
                      CastRows casts, Stream) {
  with_curve(kind, [&]<class F>(F) {
    casts_forward<F>(shape, gated, static_cast<const Bf16*>(bias), static_cast<const Bf16*>(x),
                     static_cast<Bf16*>(y), casts);
  });
}

void gated_activation_backward(RowsShape shape, Dtype dtype, Activation kind, const void* gate_up,
                               const void* dy, void* dgate_up, void* y, Stream) {
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    gated_backward<T, F>(shape, static_cast<const T*>(gate_up), static_cast<const T*>(dy),
                         static_cast<T*>(dgate_up), static_cast<T*>(y));
  });
}

}  // namespace tycho::TYCHO_ISA
