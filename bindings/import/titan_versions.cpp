// Keys of TorchTitan's versions before and after v0.2, whose TOML the importer reads.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "bindings/import/systems.h"

namespace tycho {
namespace {

/// A key that v0.2 does not have: the version that has it, and the counterpart in v0.2.
struct OtherKey {
  const char* path;
  const char* version;
  const char* instead;
};

constexpr const char* kOlder = "before v0.2";
constexpr const char* kNewer = "after v0.2";

constexpr OtherKey kOtherKeys[] = {
    {"model.tokenizer_type", kOlder, "leave it out"},
    {"model.norm_type", kOlder, "leave it out: Llama has RMSNorm"},
    {"metrics.enable_color_printing", kOlder, "metrics.disable_color_printing"},
    {"metrics.rank_0_only", kOlder, "metrics.save_for_all_ranks"},
    {"optimizer.fused", kOlder, "optimizer.implementation"},
    {"optimizer.foreach", kOlder, "optimizer.implementation"},
    {"lr_scheduler.lr_min", kOlder, "lr_scheduler.min_lr_factor"},
    {"training.batch_size", kOlder, "training.local_batch_size"},
    {"training.gradient_accumulation_steps", kOlder, "training.global_batch_size"},
    {"training.warmup_steps", kOlder, "lr_scheduler.warmup_steps"},
    {"training.data_parallel_degree", kOlder, "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_type", kOlder, "the degrees of parallelism"},
    {"training.data_parallel_shard_degree", kOlder, "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_replicate_degree", kOlder, "parallelism.data_parallel_replicate_degree"},
    {"training.tensor_parallel_degree", kOlder, "parallelism.tensor_parallel_degree"},
    {"training.disable_loss_parallel", kOlder, "parallelism.disable_loss_parallel"},
    {"training.fsdp_reshard_after_forward", kOlder, "parallelism.fsdp_reshard_after_forward"},
    {"training.compile", kOlder, "compile.enable"},
    {"training.seed", kOlder, "debug.seed"},
    {"training.deterministic", kOlder, "debug.deterministic"},
    {"experimental.context_parallel_degree", kOlder, "parallelism.context_parallel_degree"},
    {"experimental.context_parallel_rotate_method", kOlder, "parallelism.context_parallel_rotate_method"},
    {"experimental.pipeline_parallel_degree", kOlder, "parallelism.pipeline_parallel_degree"},
    {"experimental.pipeline_parallel_schedule", kOlder, "parallelism.pipeline_parallel_schedule"},
    {"experimental.pipeline_parallel_microbatches", kOlder, "parallelism.pipeline_parallel_microbatch_size"},
    {"experimental.enable_async_tensor_parallel", kOlder, "parallelism.enable_async_tensor_parallel"},
    {"experimental.custom_model_path", kOlder, "experimental.custom_import"},
    {"checkpoint.enable_checkpoint", kOlder, "checkpoint.enable"},
    {"checkpoint.interval_type", kOlder, "checkpoint.interval, in steps"},
    {"checkpoint.model_weights_only", kOlder, "checkpoint.last_save_model_only"},
    {"float8", kOlder, "quantize.linear.float8"},
    {"training.num_tokens_per_microbatch_per_dp_rank", kNewer, "training.local_batch_size"},
    {"training.num_tokens_per_train_step", kNewer, "training.global_batch_size"},
    {"training.max_context_length", kNewer, "training.seq_len"},
    {"parallelism.num_pp_microbatches", kNewer, "parallelism.pipeline_parallel_microbatch_size"},
    {"optimizer.param_groups", kNewer, "optimizer.lr and its neighbours"},
};

DocNode text_node(std::string text, bool is_plain, const DocNode& like) {
  DocNode node = like;
  node.kind = DocNode::Kind::kScalar;
  node.text = std::move(text);
  node.is_plain = is_plain;
  node.items.clear();
  node.entries.clear();
  return node;
}

/// Returns a map of the root, and creates it when it is missing.
DocNode& section(DocNode& root, const char* name) {
  if (DocNode* found = root.find(name)) return *found;
  DocNode made;
  made.kind = DocNode::Kind::kMap;
  root.entries.push_back({name, made});
  return root.entries.back().node;
}

std::optional<DocNode> take(DocNode& map, std::string_view key) {
  const DocNode* found = map.find(key);
  if (found == nullptr) return std::nullopt;
  std::optional<DocNode> taken = *found;
  std::erase_if(map.entries, [&](const KeyedNode& entry) { return entry.key == key; });
  return taken;
}

void take_all(DocNode& map, std::initializer_list<const char*> keys) {
  for (const char* key : keys) take(map, key);
}

/// Returns true when any value is set below a node.
bool has_values(const DocNode& node) {
  if (node.is_scalar()) return !read_scalar(node).is(DocScalar::Kind::kNull);
  const auto below = [](const KeyedNode& entry) { return has_values(entry.node); };
  return std::any_of(node.items.begin(), node.items.end(), has_values) ||
         std::any_of(node.entries.begin(), node.entries.end(), below);
}

void rename_key(DocNode& map, const char* key, const char* name) {
  if (std::optional<DocNode> node = take(map, key)) map.entries.push_back({name, std::move(*node)});
}

/// Moves a key of the root into a section.
void move_down(DocNode& root, const char* key, const char* name) {
  std::optional<DocNode> node = take(root, key);
  if (node) section(root, name).entries.push_back({key, std::move(*node)});
}

double number_of(const DocNode* node) {
  return node == nullptr ? 0 : std::strtod(node->text.c_str(), nullptr);
}

/// Converts a number of tokens to one of sequences, if it is a whole number of them.
void count_sequences(DocNode& training, const char* key, const char* name, double length) {
  std::optional<DocNode> tokens = take(training, key);
  if (!tokens) return;
  const double sequences = number_of(&*tokens) / length;
  const bool is_whole = sequences == std::floor(sequences) && std::isfinite(sequences);
  if (number_of(&*tokens) < 0 || is_whole)
    training.entries.push_back(
        {name, number_of(&*tokens) < 0 ? *tokens : text_node(fmt::format("{}", sequences), true, *tokens)});
  else
    training.entries.push_back({key, std::move(*tokens)});  // no key of v0.2: a problem
}

void use_training_keys(DocNode& root) {
  section(root, "parallelism");
  DocNode& training = section(root, "training");
  const double length = number_of(training.find("max_context_length"));
  count_sequences(training, "num_tokens_per_microbatch_per_dp_rank", "local_batch_size", length);
  count_sequences(training, "num_tokens_per_train_step", "global_batch_size", length);
  rename_key(training, "max_context_length", "seq_len");
  take(training, "disable_cuda_graphs");
  DocNode& parallel = section(root, "parallelism");
  const double parts = number_of(parallel.find("num_pp_microbatches"));
  const double local = number_of(training.find("local_batch_size"));
  if (std::optional<DocNode> node = take(parallel, "num_pp_microbatches"); node && parts > 0)
    parallel.entries.push_back({"pipeline_parallel_microbatch_size",
                                text_node(fmt::format("{}", std::max(1.0, local / parts)), true, *node)});
  take_all(parallel, {"enable_fsdp_symm_mem", "spmd_backend", "context_parallel_ptrr_mask_key",
                      "enable_sequence_parallel"});
}

/// Moves a single group for all parameters to v0.2's keys of the optimizer.
void use_optimizer_keys(DocNode& root) {
  DocNode* optimizer = root.find("optimizer");
  DocNode* groups = optimizer == nullptr ? nullptr : optimizer->find("param_groups");
  if (groups == nullptr || groups->items.size() != 1) return;
  DocNode group = groups->items[0];
  const DocNode* pattern = group.find("pattern");
  if (pattern == nullptr || pattern->text != ".*") return;
  if (const DocNode* name = group.find("optimizer_name")) optimizer->entries.push_back({"name", *name});
  if (const DocNode* given = group.find("optimizer_kwargs")) {
    for (const auto& [key, node] : given->entries) {
      if (key == "betas" && node.items.size() == 2) {
        optimizer->entries.push_back({"beta1", node.items[0]});
        optimizer->entries.push_back({"beta2", node.items[1]});
      } else if (key != "fused" && key != "foreach") {
        optimizer->entries.push_back({key, node});
      }
    }
  }
  take_all(*optimizer, {"param_groups", "optimizer_factory_kwargs_by_name", "implementation"});
}

/// Sets the mode of recomputation, which newer versions tell by the keys present.
void use_recompute_keys(DocNode& root) {
  DocNode* given = root.find("activation_checkpoint");
  if (given == nullptr || given->find("mode") != nullptr) return;
  const bool budget = given->find("memory_budget") != nullptr;
  const bool selects = given->find("force_recompute_mm_shapes_by_fqns") != nullptr;
  const char* mode = given->entries.empty() ? "none"
                     : budget               ? "memory_budget"
                     : selects              ? "selective"
                                            : "full";
  const DocNode like = *given;
  *given = DocNode{.kind = DocNode::Kind::kMap, .line = like.line, .last_line = like.last_line};
  given->entries.push_back({"mode", text_node(mode, false, like)});
  if (selects) given->entries.push_back({"selective_ac_option", text_node("op", false, like)});
}

}  // namespace

bool is_titan_json(const Json& json) {
  return json.is_object() && json.contains("training") && json.contains("lr_scheduler");
}

void use_titan_keys(DocNode& root) {
  const std::optional<DocNode> spec = take(root, "model_spec");
  if (!spec) return;
  for (const char* key : {"name", "flavor"})
    if (const DocNode* node = spec->find(key)) section(root, "model").entries.push_back({key, *node});
  move_down(root, "hf_assets_path", "model");
  move_down(root, "dump_folder", "job");
  rename_key(root, "profiler", "profiling");
  take_all(root, {"tokenizer", "dataloader", "loss", "compile", "comm"});
  rename_key(root, "validator", "validation");
  take_all(section(root, "profiling"),
           {"profiler_repeat", "profiler_skip_first", "profiler_skip_first_wait", "memory_snapshot_freq",
            "memory_snapshot_max_entries", "trace_post_processor"});
  take_all(section(root, "debug"), {"spmd_typechecking", "detect_anomaly", "batch_invariant", "print_config",
                                    "save_config_file", "enable_structured_logging"});
  if (const DocNode* other = root.find("override"); other != nullptr && !has_values(*other))
    take(root, "override");
  use_training_keys(root);
  use_optimizer_keys(root);
  use_recompute_keys(root);
}

std::string titan_key_elsewhere(const std::string& path) {
  const auto* const found = std::find_if(std::begin(kOtherKeys), std::end(kOtherKeys),
                                         [&](const OtherKey& one) { return path == one.path; });
  if (found == std::end(kOtherKeys)) return "";
  return fmt::format("is a key of TorchTitan {}; in v0.2: {}", found->version, found->instead);
}

}  // namespace tycho
