// LLM Foundry's train YAML -> a recipe.
#include <algorithm>

#include "bindings/import/systems.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/regex.h"

namespace tycho {
namespace {

using Kind = DocScalar::Kind;

const char* const kFiles = "Tycho chooses the names of files";
const char* const kOneWay = "Tycho has only one way to do this";
const char* const kConsole = "Tycho has its own console output";
const char* const kComputed = "derived from other keys";
const char* const kPadToken =
    "where the pad token ends documents, LLM Foundry's text loader leaves it out of the loss; here models "
    "are trained on it. train_data.pad_token_id = ID leaves that token out here, too";
const char* const kMaskedSeparator =
    "the pad token is the one that ends documents, and LLM Foundry's text loader leaves it out of the loss; "
    "here models are trained on it. train_data.pad_token_id = ID leaves that token out here, too";

bool reads_text(Mapper& mapper) {
  const DocNode* loader = mapper.root().at("train_loader.name");
  return loader != nullptr && mapper.text_of(loader) == "text";
}

/// Returns true when the folder's own tokenizer pads with the token that ends documents.
bool pads_with_separator(Mapper& mapper) {
  const Json config = foundry_tokenizer_config(mapper);
  const auto token = [&](const char* key) {
    const Json given = config.value(key, Json());
    return given.is_object() ? given.value("content", Json()) : given;
  };
  return config.is_object() && !token("pad_token").is_null() && token("pad_token") == token("eos_token");
}

/// Maps tokenizer.kwargs. Only the pad token changes numbers: the other keys set how text is encoded, and
/// shards hold tokens.
void map_tokenizer_kwargs(Mapper& mapper, const DocEntry& entry) {
  mapper.remark(entry, "taken from tokenizer.json");
  const DocNode* text = entry.node.is_map() ? entry.node.find("chat_template") : nullptr;
  if (text != nullptr && !mapper.is_null(text))
    mapper.note(entry, "write chat_template into a file: template = \"FILE.jinja\" of train_data reads it");
  const DocNode* pad = entry.node.is_map() ? entry.node.find("pad_token") : nullptr;
  if (pad != nullptr && !mapper.is_null(pad) && reads_text(mapper)) mapper.note(entry, kPadToken);
}

void map_tokenizer_name(Mapper& mapper, const DocEntry& entry) {
  if (reads_text(mapper) && pads_with_separator(mapper)) mapper.note(entry, kMaskedSeparator);
  emit_tokenizer(mapper, entry);
}

// ---- length and checkpoints ----

/// Maps save_interval. Composer also saves by epochs; Tycho by shares of the run.
void map_save_interval(Mapper& mapper, const DocEntry& entry) {
  if (foundry_is_never(mapper, &entry.node)) {
    mapper.remark(entry, "runs always save checkpoints");
    return mapper.note(
        entry,
        "saves nothing in LLM Foundry; here runs always save checkpoints: r.ckpt.every says how often");
  }
  const std::optional<std::string> lua = duration_in("ep")(mapper, entry);
  if (!lua) return;
  const auto epochs = [&](const DocNode* node) {
    const DocScalar scalar = mapper.value(node);
    if (scalar.is(Kind::kInteger)) return std::stod(scalar.text);
    try {
      const Duration duration = Duration::parse(scalar.text);
      return duration.unit == DurationUnit::kEpoch ? duration.value : 0.0;
    } catch (const Error&) {
      return 0.0;
    }
  };
  const double every = epochs(&entry.node), all = epochs(mapper.root().find("max_duration"));
  if (every <= 0) return mapper.emit(entry, "ckpt.every", *lua);
  if (all <= 0)
    return mapper.problem(entry, "this works only if max_duration is in epochs; write ba, tok or dur");
  mapper.emit(entry, "ckpt.every", lua_quoted(fmt::format("{}dur", every / all)));
}

void map_keep(Mapper& mapper, const DocEntry& entry) {
  const bool all = mapper.text_of(&entry.node) == "-1";
  mapper.emit(entry, "ckpt.keep", all ? "0" : mapper.expression(entry));
}

/// Returns the folder above checkpoints/, where a run folder keeps its checkpoints, for a save_folder of that
/// name in the run's own folder.
std::string folder_above_checkpoints(Mapper& mapper, const DocEntry& entry) {
  static const Regex named(".*run_name\\}(.*[^/])?/+checkpoints/*");
  const auto above = [](const std::string& path) {
    std::string rest = path.substr(0, path.find_last_not_of('/') + 1);
    rest.erase(rest.size() - (sizeof "checkpoints" - 1));
    return rest.substr(0, rest.find_last_not_of('/') + 1);
  };
  DocNode shorter = entry.node;
  if (named.matches_all_of(shorter.text)) {
    shorter.text = above(shorter.text);
    return mapper.expression({entry.path, shorter});
  }
  const std::string path = mapper.text_of(&entry.node);
  return named.matches_all_of(path) ? lua_quoted(above(path)) : mapper.expression(entry);
}

void map_save_folder(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "runs/{run_name}");
  if (is_remote_place(mapper.text_of(&entry.node)))
    return mapper.problem(
        entry, "a run writes to a folder: name one; ckpt.remote uploads its checkpoints to a store");
  std::string rest = mapper.text_of(&entry.node);
  if (const size_t at = rest.find("{run_name}"); at != std::string::npos)
    rest.erase(at, sizeof "{run_name}" - 1);
  if (rest.find('{') != std::string::npos) return mapper.problem(entry, "only {run_name} is replaced");
  mapper.emit(entry, "run_dir", folder_above_checkpoints(mapper, entry));
}

void map_run_name(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the recipe's name");
  mapper.emit(entry, "run_name", mapper.expression(entry));
}

void map_micro_batch(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "auto") return mapper.emit(entry, "micro_batch", "\"auto\"");
  const auto number = [&](const DocNode* node) {
    const DocScalar scalar = mapper.value(node);
    return scalar.is(Kind::kInteger) ? std::strtod(scalar.text.c_str(), nullptr) : 0.0;
  };
  const DocNode* batch = mapper.root().find("global_train_batch_size");
  const double all = number(batch);
  if (all <= 0 || number(&entry.node) <= all) return to("", "micro_batch", count_of("sp")).act(mapper, entry);
  to("", "micro_batch", count_of("sp")).act(mapper, {"global_train_batch_size", *batch});
  mapper.note(
      entry, fmt::format("is more than global_train_batch_size: lowered to {}, as in LLM Foundry; on N ranks "
                         "write micro_batch = {} / N",
                         all, all));
}

/// Maps the weights of tokens. Rows of a text loader have the same number of tokens, so counting rows or
/// tokens is the same, unless the pad token excludes some.
void map_token_weights(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) != "false") return mapper.remark(entry, "every token has the same weight");
  const bool leaves_out =
      !mapper.is_null(mapper.root().at("tokenizer.kwargs.pad_token")) || pads_with_separator(mapper);
  if (reads_text(mapper) && leaves_out)
    return mapper.problem(entry,
                          "weights every micro-batch equally, and the pad token leaves different numbers of "
                          "tokens out of them; here every token of a step has the same weight, as with true: "
                          "set it to true");
  if (reads_text(mapper)) return mapper.remark(entry, "all rows of shards have the same number of tokens");
  mapper.problem(entry,
                 "weights every micro-batch equally, whatever it contains; here every token of a step has "
                 "the same weight, as with true: set it to true");
}

const char* const kShards = "the next unit is always gathered ahead of its use";

/// Writes the counterpart of a strategy of PyTorch's FSDP. Keys of explicit degrees have rows of their own.
void write_strategy(Mapper& mapper, const DocEntry& entry, const std::string& strategy, bool has_degree) {
  const bool hybrid = strategy == "HYBRID_SHARD" || strategy == "_HYBRID_SHARD_ZERO2";
  const bool keeps = strategy == "SHARD_GRAD_OP" || strategy == "_HYBRID_SHARD_ZERO2";
  if (strategy == "NO_SHARD") return mapper.remark(entry, "every rank holds the whole model");
  if (!hybrid && !keeps && strategy != "FULL_SHARD")
    return mapper.problem(entry, "expected FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD or NO_SHARD");
  if (!has_degree && !hybrid) mapper.emit(entry, "parallel.dp_shard", "-1", strategy);
  if (!has_degree && hybrid) {
    mapper.emit(entry, "parallel.dp_shard", "8", strategy + ": the ranks of one node");
    mapper.note(entry, "a model is shared by the ranks of one node, taken to be 8: set parallel.dp_shard");
  }
  if (keeps) mapper.emit(entry, "parallel.reshard_after_forward", "false");
}

/// Maps the dtype in which gradients are reduced. PURE is the dtype that the model computes in.
void map_fsdp_precision(Mapper& mapper, const DocEntry& entry) {
  const std::string mode = mapper.text_of(&entry.node);
  if (mode == "PURE" && mapper.root().at("precision") != nullptr &&
      mapper.text_of(mapper.root().at("precision")) == "amp_bf16")
    return mapper.emit(entry, "parallel.reduce_dtype", "\"bf16\"", mode);
  noted("mixed_precision", {"null", "DEFAULT"}, "reductions and master weights are fp32 here")
      .act(mapper, entry);
}

const Rows kFsdp = {
    elsewhere("sharding_strategy"),
    by("mixed_precision", map_fsdp_precision),
    to("state_dict_type", "ckpt.state",
       words({{"full", "full"}, {"sharded", "sharded"}, {"local", "sharded"}})),
    by("activation_checkpointing", map_full_recompute),
    left_out("activation_checkpointing_reentrant", kOneWay),
    only("activation_cpu_offload", {"false"}, "is not supported"),
    only("cpu_offload", {"false"}, "is not supported"),
    left_out("backward_prefetch", kShards),
    left_out("backward_prefetch_limit", kShards),
    left_out("forward_prefetch", kShards),
    left_out("forward_prefetch_limit", kShards),
    left_out("limit_all_gathers", kShards),
    to("data_parallel_shard_degree", "parallel.dp_shard"),
    to("data_parallel_replicate_degree", "parallel.dp_replicate"),
    left_out("sync_module_states", "all ranks start from the same weights"),
    left_out("use_orig_params", "parameters keep their names and groups"),
    noted("keep_low_precision_grads", {"null", "false"}, "gradients are fp32 here"),
    left_out("load_monolith_rank0_only", "each rank reads its part"),
    left_out("sharded_ckpt_prefix_dir", kFiles),
    left_out("process_group", "see parallel"),
    left_out("auto_wrap", "embedding, blocks and head are gathered one by one"),
    left_out("te_checkpoint_wrapper", kOneWay),
    left_out("te_shard_fp8_weight", kOneWay),
    left_out("verbose", kConsole),
    only("load_planner", {"null"}, "is not supported"),
    only("save_planner", {"null"}, "is not supported"),
    only("ignored_modules", {"null", "[]"}, "is not supported"),
    noted("master_weights_dtype", {"null", "fp32", "float32"}, "master weights are fp32 here"),
};

void map_fsdp(Mapper& mapper, const DocEntry& entry) {
  mapper.out().comments_before(entry.node.line);
  mapper.walk(entry, kFsdp);
  if (!entry.node.is_map()) return;
  const DocNode* strategy = entry.node.find("sharding_strategy");
  const bool has_degree = !mapper.is_null(entry.node.find("data_parallel_shard_degree"));
  if (strategy == nullptr) return write_strategy(mapper, entry, "FULL_SHARD", has_degree);
  write_strategy(mapper, {entry.path + ".sharding_strategy", *strategy}, mapper.text_of(strategy),
                 has_degree);
}

/// Reason for unknown top-level keys, which LLM Foundry takes for variables, with a warning.
const char* const kVariable = "a variable: what refers to it has its value";

/// Returns the rows. A function, because it uses tables of other sources.
Rows parts_of_the_run() {
  return {
      elsewhere("variables"),
      by("model", map_foundry_model, foundry_model_rows()),
      group("tokenizer", {by("name", map_tokenizer_name), by("kwargs", map_tokenizer_kwargs)}),
      foundry_optimizer_row(),
      foundry_scheduler_row(),
      by(
          "train_loader",
          [](Mapper& mapper, const DocEntry& entry) { map_foundry_loader(mapper, entry, "train_data"); },
          foundry_loader_rows()),
      by("fsdp_config", map_fsdp, kFsdp),
      foundry_callbacks_row(),
      foundry_loggers_row(),
      foundry_algorithms_row(),
  };
}

/// amp_fp8 is Transformer Engine's: scales of a tensor, from earlier steps.
void map_precision(Mapper& mapper, const DocEntry& entry) {
  const bool fp8 = mapper.text_of(&entry.node) == "amp_fp8";
  to("", "precision", words({{"amp_bf16", "bf16"}, {"bf16", "bf16"}, {"fp32", "fp32"}, {"amp_fp8", "bf16"}}))
      .act(mapper, entry);
  if (!fp8) return;
  mapper.emit(entry, "fp8", "t.fp8 { recipe = \"tensorwise\" }");
  mapper.note(entry,
              "Transformer Engine scales by the maxima of earlier steps; tensorwise scales by those of the "
              "step itself");
}

const Rows kNumbers = {
    to("max_duration", "max_duration", duration_in("ep")),
    to("max_seq_len", "seq_len"),
    to("global_train_batch_size", "global_batch", count_of("sp")),
    by("device_train_microbatch_size", map_micro_batch),
    left_out("device_eval_batch_size", "evaluation uses the training batch size"),
    left_out("device_train_batch_size", kComputed),
    left_out("device_train_grad_accum", kComputed),
    left_out("n_gpus", kComputed),
    to("seed", "seed"),
    by("precision", map_precision),
    only("code_paths", {"null", "[]"}, "Python cannot be loaded"),
    left_out("global_seed", kVariable),
    left_out("icl_max_seq_len", kVariable),
    left_out("dataset", kVariable),
    left_out("max_split_size_mb", "Tycho manages memory itself"),
    left_out("expandable_segments", "Tycho manages memory itself"),
    left_out("cuda_load_lazy", "Tycho manages memory itself"),
    left_out("dist_timeout", kOneWay),
    only("tp_config", {"null"}, "tensor parallelism is not supported"),
    by("accumulate_train_batch_on_tokens", map_token_weights),
    only("train_subset_num_batches", {"-1"}, "taken from max_duration"),
};

const Rows kOutputs = {

    left_out("progress_bar", kConsole),
    left_out("log_to_console", kConsole),
    left_out("python_log_level", kConsole),
    to("console_log_interval", "log.every", duration_in("ep")),
    left_out("log_config", "it is in the run folder"),
    left_out("metadata", "the run folder records the recipe"),
    left_out("flatten_metadata", "the run folder records the recipe"),
    by("run_name", map_run_name),
    by("save_folder", map_save_folder),
    left_out("save_filename", kFiles),
    left_out("save_latest_filename", kFiles),
    by("save_interval", map_save_interval),
    by("save_num_checkpoints_to_keep", map_keep),
    noted("save_overwrite", {"null", "false"},
          "a run resumes from its newest checkpoint; resume = none starts over"),
    only("save_weights_only", {"false"}, "checkpoints contain everything needed to resume"),
    only("save_ignore_keys", {"null"}, "checkpoints contain everything needed to resume"),
    only("load_ignore_keys", {"null"}, "is not supported"),
    only("load_path", {"null"},
         "Composer's checkpoints cannot be read; resume = PATH takes a Tycho checkpoint"),
    left_out("load_weights_only", "nothing is loaded"),
    left_out("load_strict_model_weights", "always the case"),
    noted("autoresume", {"null", "true"},
          "a run resumes from its newest checkpoint; resume = none starts over"),
    only("only_hf_checkpoint", {"false"}, "tycho convert exports a checkpoint"),
    only("only_composer_checkpoint", {"false"}, "is not supported"),
    left_out("spin_dataloaders", "the position in the data is kept"),
    only("compile_config", {"null"}, "there is nothing to compile"),
    foundry_profiler_row(),
};

}  // namespace

void map_full_recompute(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) != "true") return mapper.remark(entry, "the default");
  mapper.emit(entry, "recompute.mode", "\"full\"");
}

const Rows& foundry_rows() {
  static const Rows rows = [] {
    Rows all = parts_of_the_run();
    const Rows icl = foundry_icl_rows(), eval = foundry_eval_rows();
    for (const Rows* part : {&kNumbers, &eval, &icl, &kOutputs})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }();
  return rows;
}

void map_foundry(Mapper& mapper) {
  mapper.walk_top(foundry_rows());
  write_foundry_eval_default(mapper);
  if (mapper.root().find("precision") == nullptr)
    mapper.out().write("r.precision = \"bf16\"  -- LLM Foundry's default, amp_bf16", 0);
  if (mapper.root().at("algorithms.gradient_clipping") == nullptr)
    mapper.out().write("r.clip.norm = 0  -- the YAML does not clip gradients", 0);
}

}  // namespace tycho
