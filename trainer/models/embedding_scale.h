// The factor of embeddings before the first block.
#pragma once
#include <c10/util/BFloat16.h>

#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns the factor rounded to the dtype that the model computes in, as Gemma's reference rounds it.
inline double embedding_scale(const DecoderSpec& spec, at::ScalarType dtype) {
  const auto scale = static_cast<float>(spec.embedding.scale);
  return dtype == at::kBFloat16 ? static_cast<float>(at::BFloat16(scale)) : scale;
}

}  // namespace tycho
