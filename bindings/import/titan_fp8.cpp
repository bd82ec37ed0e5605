// TorchTitan's converters: torchao's float8 as r.fp8.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "bindings/import/systems.h"

namespace tycho {
namespace {

const char* const kFp8 = "quantize.linear.float8";

/// Returns the converters, where they name fp8's; else null.
const DocNode* fp8_converters(Mapper& mapper) {
  const DocNode* converters = mapper.root().at("model.converters");
  const auto is_fp8 = [&](const DocNode& name) { return mapper.text_of(&name) == kFp8; };
  const bool found =
      converters != nullptr && std::any_of(converters->items.begin(), converters->items.end(), is_fp8);
  return found ? converters : nullptr;
}

/// Returns a part of the name of TorchTitan's module as Hugging Face writes it: "attention.wq" is
/// "self_attn.q_proj".
std::string hf_words(const std::string& words) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"attention", "self_attn"}, {"feed_forward", "mlp"}, {"wq", "q_proj"},    {"wk", "k_proj"},
      {"wv", "v_proj"},           {"wo", "o_proj"},        {"w1", "gate_proj"}, {"w2", "down_proj"},
      {"w3", "up_proj"},          {"output", "lm_head"}};
  std::string written;
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find('.', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    const auto* const found = std::find_if(std::begin(kNames), std::end(kNames),
                                           [&](const auto& name) { return name.first == word; });
    written += found == std::end(kNames) ? word : found->second;
    if (end < words.size()) written += '.';
    begin = end + 1;
  }
  return written;
}

void map_converters(Mapper& mapper, const DocEntry& entry) {
  for (const DocNode& name : entry.node.items)
    if (mapper.text_of(&name) != kFp8)
      mapper.problem({entry.path, name}, fmt::format("Tycho has {} of TorchTitan's converters", kFp8));
  mapper.remark(entry, fp8_converters(mapper) != nullptr ? "see fp8" : "nothing is converted");
}

/// Accepts a key that write_titan_fp8 reads, or that has no effect because no converter needs it.
Row read_with_converters(const char* key) {
  return by(key, [](Mapper& mapper, const DocEntry& entry) {
    mapper.remark(entry, fp8_converters(mapper) != nullptr ? "see fp8" : "no converter needs it");
  });
}

}  // namespace

void write_titan_fp8(Mapper& mapper) {
  const DocNode* converters = fp8_converters(mapper);
  if (converters == nullptr) return;
  std::vector<std::string> fields = {
      "recipe = " + lua_quoted(titan_value(mapper, "quantize.linear.float8.recipe_name", "tensorwise"))};
  std::vector<std::string> skip;
  bool skips_head = false;
  if (const DocNode* filter = mapper.root().at("quantize.linear.float8.filter_fqns"); filter != nullptr)
    for (const DocNode& item : filter->items) {
      const std::string words = mapper.text_of(&item);
      if (words == "auto_filter_small_kn")
        fields.emplace_back("skip_small = true");
      else if (words == "output")
        skips_head = true;
      else
        skip.push_back(lua_quoted(hf_words(words)));
    }
  if (!skip.empty()) fields.push_back(fmt::format("skip = {{ {} }}", fmt::join(skip, ", ")));
  if (titan_value(mapper, "quantize.linear.float8.enable_fsdp_float8_all_gather", "false") == "true")
    fields.emplace_back("gather = true");
  const DocEntry entry = {"model.converters", *converters};
  mapper.emit(entry, "fp8", fmt::format("t.fp8 {{ {} }}", fmt::join(fields, ", ")));
  if (!skips_head)
    mapper.note(entry, "the output multiplies in bf16 here, as with filter_fqns = [\"output\"]");
}

Row titan_converters_row() { return by("converters", map_converters); }

Row titan_quantize_row() {
  return group("quantize",
               {group("linear",
                      {group("float8",
                             {read_with_converters("recipe_name"), read_with_converters("filter_fqns"),
                              read_with_converters("enable_fsdp_float8_all_gather"),
                              left_out("precompute_float8_dynamic_scale_for_fsdp",
                                       "with fp8.gather all scales are always computed at once after a step"),
                              left_out("emulate", "CPUs compute fp8 in bf16, GPUs in fp8")}),
                       left_out("mx", "no converter needs it")}),
                left_out("grouped_mm", "no converter needs it")});
}

}  // namespace tycho
