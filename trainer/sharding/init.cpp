// Initialisation of parameters.
#include "trainer/sharding/init.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/random/normal_numbers.h"
#include "trainer/base/random/philox.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {
namespace {

/// Draws four normal numbers. Numbers beyond three deviations are drawn again from further streams.
void four_cut_normals(uint64_t key, uint64_t counter, double std, float out[4]) {
  constexpr uint64_t kNextStream = 0x9e3779b97f4a7c15;
  four_normals(key, counter, std, out);
  const auto is_out = [&](float x) { return std::abs(static_cast<double>(x)) > 3 * std; };
  while (std::any_of(out, out + 4, is_out)) {
    float again[4];
    four_normals(key += kNextStream, counter, std, again);
    for (int i = 0; i < 4; ++i)
      if (is_out(out[i])) out[i] = again[i];
  }
}

void four_uniforms(uint64_t key, uint64_t counter, const Init& init, float out[4]) {
  const auto words = philox(key, counter);
  for (size_t i = 0; i < 4; ++i) {
    const double x = (static_cast<double>(words[i]) + 0.5) * 0x1p-31 - 1.0;  // (-1, 1)
    out[i] = static_cast<float>(init.middle + init.scale * x);
  }
}

void draw_four(const Init& init, uint64_t key, uint64_t counter, float out[4]) {
  switch (init.kind) {
    case Init::Kind::kNormal: return four_normals(key, counter, init.scale, out);
    case Init::Kind::kCutNormal: return four_cut_normals(key, counter, init.scale, out);
    case Init::Kind::kUniform: return four_uniforms(key, counter, init, out);
    case Init::Kind::kUnit: {
      const auto words = philox(key, counter);
      return static_cast<void>(std::transform(words.begin(), words.end(), out, uniform_float));
    }
    case Init::Kind::kOnes: return static_cast<void>(std::fill_n(out, 4, 1.0f));
    case Init::Kind::kZeros: return static_cast<void>(std::fill_n(out, 4, 0.0f));
  }
}

}  // namespace

void draw_numbers(const Init& init, uint64_t key, int64_t begin, int64_t count, float* out) {
  const int64_t end = begin + count;
  int64_t i = begin;
  const auto draw_until = [&](int64_t stop) {
    while (i < stop) {
      float values[4];
      draw_four(init, key, static_cast<uint64_t>(i / 4), values);
      for (int64_t k = i % 4; k < 4 && i < stop; ++k, ++i) out[i - begin] = values[k];
    }
  };
  if (init.kind == Init::Kind::kNormal) {
    draw_until(std::min(end, (begin + 3) / 4 * 4));
    const int64_t groups = (end - i) / 4;
    cpu_kernels().normal_numbers(groups, key, static_cast<uint64_t>(i / 4), init.scale, out + (i - begin));
    i += 4 * groups;
  }
  draw_until(end);
}

void draw_init(const ParamSpec& spec, uint64_t seed, int64_t begin, int64_t count, float* out) {
  draw_numbers(spec.init, stream_key(seed, spec.name), begin, count, out);
}

void initialise(const OwnedRange& range, uint64_t seed, const DefinedInit* own) {
  Tensor master = range.master;
  const bool in_place = master.is_cpu() && master.scalar_type() == at::kFloat;
  const Tensor host = in_place ? master : at::zeros(master.sizes(), at::TensorOptions().dtype(at::kFloat));
  float* data = host.data_ptr<float>();
  for (const Extent& e : range.extents)
    at::parallel_for(0, e.size(), 1 << 16, [&](int64_t begin, int64_t end) {
      for_whole_runs(*e.spec, e.first + begin, end - begin, [&](int64_t i, int64_t j, int64_t n) {
        float* const out = data + e.begin + begin + i;
        if (!own || !own->draw(*e.spec, seed, j, n, out)) draw_init(*e.spec, seed, j, n, out);
      });
    });
  if (!in_place) master.copy_(host);
  range.refresh_from_master();
}

}  // namespace tycho
