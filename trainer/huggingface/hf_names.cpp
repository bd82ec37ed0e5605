// Matches tensors with parameters.
#include "trainer/huggingface/hf_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regex.h"
#include "trainer/base/text/line_list.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/huggingface/float_types.h"
#include "trainer/huggingface/text_config.h"

namespace tycho {
namespace {

/// Name parts of an MPT's parameters that is saved unfused: Wqkv is Wq, Wk and Wv.
constexpr std::array kUnfused = {"Wq.", "Wk.", "Wv."};

using ParamNumbers = std::unordered_map<std::string, size_t>;

/// Returns the names that a tensor may stand for: base models lack a prefix, checkpoints of Composer have an
/// extra one.
std::vector<std::string> candidates(const std::string& name) {
  std::vector<std::string> names = {name, text_tensor_name(name), "model." + name, "transformer." + name};
  if (name.starts_with("model.")) names.push_back(name.substr(6));
  return names;
}

const size_t* find_param(const ParamNumbers& params, const std::string& name) {
  for (const std::string& candidate : candidates(name))
    if (const auto found = params.find(candidate); found != params.end()) return &found->second;
  return nullptr;
}

/// Returns the fused name and which part of it this is; -1 for any other name.
std::pair<std::string, int> fused_name(const std::string& name) {
  for (size_t i = 0; i < kUnfused.size(); ++i) {
    const size_t at = name.find(std::string(".attn.") + kUnfused[i]);
    if (at != std::string::npos)
      return {name.substr(0, at) + ".attn.Wqkv." + name.substr(at + 9), static_cast<int>(i)};
  }
  return {"", -1};
}

/// Returns true for buffers that models compute themselves.
bool is_buffer(const std::string& name) {
  static const Regex buffers(R"((.*\.)?(rotary_emb\.inv_freq|attn\.bias|attn\.masked_bias|attn_bias))");
  return buffers.matches_all_of(name);
}

class Matcher {
 public:
  Matcher(const ModelLayout& layout, const HfFolder& folder) : layout_(layout), folder_(folder) {
    for (const UnitSpec& unit : layout.units)
      for (const ParamSpec& spec : unit.params) {
        numbers_[spec.name] = match_.params.size();
        match_.params.push_back({&spec, {}});
      }
  }

  HfMatch match() {
    for (const HfTensor& tensor : folder_.tensors) place(tensor);
    for (const HfParam& param : match_.params) check(param);
    problems_.insert(problems_.end(), left_over_.begin(), left_over_.end());
    if (problems_.empty()) return std::move(match_);
    fail(ExitCode::kUnusable, "[convert] the weights of {} do not fit the model:{}", folder_.path,
         line_list(problems_));
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void place(const HfTensor& tensor) {
    if (const size_t* number = find_param(numbers_, tensor.name))
      return add(match_.params[*number], 0, 1, tensor);
    const auto [fused, part] = fused_name(tensor.name);
    if (part >= 0)
      if (const size_t* number = find_param(numbers_, fused))
        return add(match_.params[*number], part, 3, tensor);
    const bool unread =
        is_buffer(tensor.name) || (folder_.config.contains(kTextOf) && is_vision_tensor(tensor.name));
    if (unread) return match_.ignored.push_back(tensor.name);
    if (layout_.tied && tensor.name.ends_with("lm_head.weight")) return place_tied_head(tensor);
    left_over_.push_back(fmt::format("{} ({} [{}]) does not belong to any parameter of this model",
                                     tensor.name, tensor.dtype, fmt::join(tensor.shape, ", ")));
  }

  void add(HfParam& param, int part, size_t num_parts, const HfTensor& tensor) {
    if (!is_float_dtype(tensor.dtype))
      return problem("{} is {}; weights are read as F32, BF16 or F16: import the unquantised model",
                     tensor.name, tensor.dtype);
    if (param.parts.empty()) param.parts.resize(num_parts);
    if (param.parts.size() != num_parts || param.parts[static_cast<size_t>(part)] != nullptr)
      return problem("{} and another tensor both stand for {}", tensor.name, param.spec->name);
    param.parts[static_cast<size_t>(part)] = &tensor;
  }

  /// Handles a tied head, which some writers save too. It must equal the embedding, because otherwise tying
  /// would lose it.
  void place_tied_head(const HfTensor& head) {
    const size_t* number = find_param(numbers_, layout_.units.front().params.front().name);
    tied_head_ = &head;
    tied_embedding_ = &match_.params[*number];
    match_.ignored.push_back(head.name);
  }

  void check(const HfParam& param) {
    const Shape& wanted = param.spec->shape;
    if (param.parts.empty()) return problem("{} [{}] is missing", param.spec->name, fmt::join(wanted, ", "));
    Shape found;
    for (const HfTensor* part : param.parts) {
      if (part == nullptr) return problem("{}: a part of it is missing", param.spec->name);
      if (found.empty())
        found = part->shape;
      else if (!part->shape.empty())
        found[0] =
            static_cast<int64_t>(static_cast<uint64_t>(found[0]) + static_cast<uint64_t>(part->shape[0]));
    }
    if (found != wanted)
      problem("{}: the model expects [{}], the file has [{}]", param.spec->name, fmt::join(wanted, ", "),
              fmt::join(found, ", "));
    if (&param == tied_embedding_) check_tied_head(*param.parts[0]);
  }

  void check_tied_head(const HfTensor& embedding) {
    bool same = tied_head_->shape == embedding.shape && tied_head_->dtype == embedding.dtype;
    constexpr int64_t kChunk = int64_t{1} << 18;
    std::vector<char> a(kChunk), b(kChunk);
    for (int64_t at = 0; same && at < embedding.num_bytes; at += kChunk) {
      const auto n = static_cast<size_t>(std::min(kChunk, embedding.num_bytes - at));
      read_exactly(tied_head_->path, tied_head_->offset + at, a.data(), n);
      read_exactly(embedding.path, embedding.offset + at, b.data(), n);
      same = std::equal(a.begin(), a.begin() + static_cast<int64_t>(n), b.begin());
    }
    if (!same)
      problem(
          "{} differs from the embedding, although config.json ties them: set \"tie_word_embeddings\": false "
          "there",
          tied_head_->name);
  }

  const ModelLayout& layout_;
  const HfFolder& folder_;
  HfMatch match_;
  ParamNumbers numbers_;
  std::vector<std::string> problems_, left_over_;
  const HfTensor* tied_head_ = nullptr;
  const HfParam* tied_embedding_ = nullptr;
};

}  // namespace

HfMatch match_hf_tensors(const ModelLayout& layout, const HfFolder& folder) {
  return Matcher(layout, folder).match();
}

std::vector<TensorRows> unfused_rows(const ParamSpec& spec, int64_t query_rows) {
  constexpr std::string_view kFused = ".attn.Wqkv.";
  const size_t at = spec.name.find(kFused);
  if (at == std::string::npos) return {{spec.name, spec.shape, 0}};
  const int64_t rows = spec.shape[0], kv_rows = (rows - query_rows) / 2, row = numel(spec.shape) / rows;
  std::vector<TensorRows> parts;
  int64_t first = 0;
  for (const char* part : kUnfused) {
    Shape shape = spec.shape;
    shape[0] = parts.empty() ? query_rows : kv_rows;
    parts.push_back({spec.name.substr(0, at) + ".attn." + part + spec.name.substr(at + kFused.size()), shape,
                     first * row});
    first += shape[0];
  }
  return parts;
}

void read_hf_tensor(const HfTensor& tensor, float* to, int64_t begin, int64_t n) {
  const int64_t width = safetensors_dtype_bytes(tensor.dtype);
  if (width == 4) return read_exactly(tensor.path, tensor.offset + begin * 4, to, static_cast<size_t>(n) * 4);
  std::vector<char> bytes(static_cast<size_t>(n * width));
  read_exactly(tensor.path, tensor.offset + begin * width, bytes.data(), bytes.size());
  widen_floats(tensor.dtype, bytes.data(), to, n);
}

}  // namespace tycho
