// Matches the tensors of a Hugging Face folder with the parameters of a model.
#pragma once
#include <string>
#include <vector>

#include "trainer/huggingface/hf_folder.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// A parameter and its tensors, stacked by rows: one, or an MPT's Wq, Wk and Wv.
struct HfParam {
  const ParamSpec* spec = nullptr;
  std::vector<const HfTensor*> parts;
  int64_t num_bytes() const { return numel(spec->shape) * 4; }  // as fp32
};

struct HfMatch {
  std::vector<HfParam> params;       // in the order of the layout
  std::vector<std::string> ignored;  // tensors that are computed, or equal to the embedding
};

/// Matches by name, with or without the prefixes "model." and "transformer.". Throws Error (kUnusable) that
/// lists what is missing, left over, of another shape, or of a dtype that weights do not have. Pointers are
/// into `layout` and `folder`.
HfMatch match_hf_tensors(const ModelLayout& layout, const HfFolder& folder);

/// Rows of a parameter that form a separate tensor.
struct TensorRows {
  std::string name;
  Shape shape;
  int64_t first = 0;  // first element within the parameter
};
/// Returns an MPT's Wqkv as Wq, of `query_rows` rows, Wk and Wv; any other parameter as a whole.
std::vector<TensorRows> unfused_rows(const ParamSpec& spec, int64_t query_rows);

/// Reads elements [begin, begin + n) of a tensor as fp32. Throws Error (kUnusable) on a short file.
void read_hf_tensor(const HfTensor& tensor, float* to, int64_t begin, int64_t n);

}  // namespace tycho
