// Nanotron's YAML -> a recipe.
#include <fmt/ranges.h>

#include <algorithm>

#include "bindings/import/systems.h"

namespace tycho {
namespace {

const char* const kSpread = "Tycho chooses how ranks communicate";
const char* const kComputed = "see the end";
const char* const kConsole = "Tycho has its own console output";
const char* const kOneWay = "Tycho has only one way to do this";

/// Maps the number of positions, which in Nanotron may be exceeded by longer sequences.
void map_positions(Mapper& mapper, const DocEntry& entry) {
  const double length = nanotron_number(mapper, "tokens.sequence_length", 0);
  const double given = nanotron_number(mapper, "model.model_config.max_position_embeddings", length);
  if (length <= given) return to("", "max_seq_len").act(mapper, entry);
  mapper.emit(entry, "max_seq_len", fmt::format("{}", length), "tokens.sequence_length, which is longer");
}

const Rows kLlama = {
    to("hidden_size", "width"),
    to("intermediate_size", "ffn_width"),
    to("num_hidden_layers", "layers"),
    to("num_attention_heads", "heads"),
    to("num_key_value_heads", "kv_heads"),
    by("max_position_embeddings", map_positions),
    to("vocab_size", "vocab_size"),
    to("rms_norm_eps", "norm_eps"),
    to("rope_theta", "rope_theta"),
    to("tie_word_embeddings", "tied"),
    only("hidden_act", {"silu"}, "Llama has silu"),
    only("rope_scaling", {"null"}, "Nanotron's Llama does not apply it"),
    left_out("rope_interleaved", "weights have Hugging Face's order"),
    left_out("initializer_range", "taken from model.init_method"),
    left_out("bos_token_id", "taken from the data"),
    left_out("eos_token_id", "taken from the data"),
    left_out("pad_token_id", "there is no padding"),
    left_out("pretraining_tp", kSpread),
    left_out("use_cache", "generation always does this"),
    left_out("is_llama_config", "it is"),
    left_out("is_qwen2_config", "without biases it is Llama"),
    only("attention_bias", {"false"}, "biases of attention are not supported"),
    left_out("interleaved_rotary", "weights have Hugging Face's order"),
    only("rope_seq_len_interpolation_factor", {"null"}, "write rope_scaling into the recipe"),
    only("no_rope_layer", {"null"}, "layers without positions are not supported"),
    only("sliding_window_size", {"null"}, "windows of Llama are not supported"),
    only("flex_attention_mask", {"null"}, "masks are not supported"),
    only("moe_config", {"null"}, "mixtures of experts are not supported"),
    only("z_loss_enabled", {"false"}, "z-loss is not supported"),
    left_out("z_loss_coefficient", "used with z_loss_enabled alone"),
    noted("_use_doc_masking", {"false"},
          "set eos_token_id of train_data: attention stays within documents then"),
    left_out("_attn_implementation", kOneWay),
    left_out("_fused_rms_norm", kOneWay),
    left_out("_fused_rotary_emb", kOneWay),
    left_out("_use_qkv_packed", kOneWay),
    left_out("ring_attn_heads_k_stride", kSpread),
    left_out("log_attn_probs", "not logged"),
};

/// Returns the fields for Nanotron's defaults of absent keys, and the initial deviation.
std::vector<std::string> model_defaults(Mapper& mapper) {
  std::vector<std::string> fields;
  const auto absent = [&](const std::string& key) {
    return mapper.root().at("model.model_config." + key) == nullptr;
  };
  const std::pair<const char*, const char*> defaults[] = {
      {"hidden_size", "width = 4096"},      {"intermediate_size", "ffn_width = 11008"},
      {"num_hidden_layers", "layers = 32"}, {"num_attention_heads", "heads = 32"},
      {"vocab_size", "vocab_size = 32000"}, {"rms_norm_eps", "norm_eps = 1e-6"},
      {"rope_theta", "rope_theta = 10000"}};
  for (const auto& [key, field] : defaults)
    if (absent(key)) fields.emplace_back(field);
  if (const DocNode* std = mapper.root().at("model.init_method.std"))
    fields.push_back("init_std = " + mapper.expression({"model.init_method.std", *std}));
  return fields;
}

void map_config(Mapper& mapper, const DocEntry& entry) {
  mapper.component(entry, "model", "t.model.llama", kLlama, model_defaults(mapper));
}

const Rows kModel = {
    left_out("ddp_bucket_cap_mb", kSpread),
    to("dtype", "precision", words({{"bfloat16", "bf16"}, {"float32", "fp32"}})),
    left_out("make_vocab_size_divisible_by", "taken from vocab_size"),
    group("init_method",
          {elsewhere("std"), left_out("scaling_method", "projections are divided by sqrt(2 layers)"),
           only("use_mup", {"false"}, "spectral muP is not supported"),
           only("path", {"null"}, "resume = PATH takes a Tycho checkpoint")}),
    by("model_config", map_config, kLlama),
};

/// The steps at which the learning rate begins to fall, for how long it falls, and when it has fallen.
struct Decay {
  double start = 0, steps = 0;
  double end() const { return start + steps; }
};

Decay decay_of(Mapper& mapper) {
  const auto number = [&](const std::string& key, double usual) {
    return nanotron_number(mapper, ("optimizer.learning_rate_scheduler." + key).c_str(), usual);
  };
  const double warmup = number("lr_warmup_steps", 0);
  const double usual = std::max(0.0, nanotron_number(mapper, "tokens.train_steps", 0) - warmup);
  return {number("lr_decay_starting_step", warmup), number("lr_decay_steps", usual)};
}

/// Maps train_steps. A run that ends before the decay does is a part of a longer run in Tycho.
void map_train_steps(Mapper& mapper, const DocEntry& entry) {
  const double steps = nanotron_number(mapper, "tokens.train_steps", 0), end = decay_of(mapper).end();
  if (end <= steps || mapper.root().at("optimizer.learning_rate_scheduler") == nullptr)
    return to("", "max_duration", count_of("ba")).act(mapper, entry);
  mapper.emit(entry, "max_duration", lua_quoted(fmt::format("{}ba", end)), "where the decay ends");
  mapper.note(entry, fmt::format("ends before the learning rate has fallen, at step {0}, so max_duration is "
                                 "{0}ba: `tycho run FILE --until {1}ba` ends where Nanotron does",
                                 end, steps));
}

const Rows kTokens = {
    to("sequence_length", "seq_len"),
    by("train_steps", map_train_steps),
    to("micro_batch_size", "micro_batch", count_of("sp")),
    left_out("batch_accumulation_per_replica", "see global_batch at the end"),
    left_out("val_check_interval", "Nanotron never validates"),
    left_out("limit_val_batches", "Nanotron never validates"),
    left_out("limit_test_batches", "Nanotron never validates"),
};

void map_clip(Mapper& mapper, const DocEntry& entry) {
  mapper.emit(entry, "clip.norm", mapper.is_null(&entry.node) ? "0" : mapper.expression(entry));
}

const Rows kSchedule = {
    elsewhere("learning_rate"),
    elsewhere("lr_warmup_steps"),
    only("lr_warmup_style", {"linear"}, "warm-up is linear"),
    elsewhere("lr_decay_style"),
    elsewhere("lr_decay_steps"),
    elsewhere("lr_decay_starting_step"),
    elsewhere("min_decay_lr"),
};

/// Writes the schedule: constant from the end of warm-up to the start of the decay, then down to the floor.
void map_schedule(Mapper& mapper, const DocEntry& entry) {
  const auto number = [&](const char* key, double usual) {
    return nanotron_number(mapper, (entry.path + "." + key).c_str(), usual);
  };
  const double peak = number("learning_rate", 0), floor = number("min_decay_lr", peak);
  const double warmup = number("lr_warmup_steps", 0);
  const Decay decay = decay_of(mapper);
  if (peak <= 0) return mapper.problem(entry, "expected learning_rate");
  const DocNode* style = entry.node.find("lr_decay_style");
  mapper.component(
      entry, "scheduler", "t.sched.wsd", kSchedule,
      {fmt::format("t_warmup = \"{}ba\", t_decay = \"{}ba\", t_max = \"{}ba\"", warmup, decay.steps,
                   decay.end()),
       fmt::format("decay_type = {}, alpha_f = {}",
                   lua_quoted(style == nullptr ? "linear" : mapper.text_of(style)), floor / peak),
       "compat = \"nanotron\""});
}

const Rows kFactory = {
    only("name", {"adamW"}, "Tycho has adamW of Nanotron's optimizers"),
    elsewhere("adam_beta1"),
    elsewhere("adam_beta2"),
    elsewhere("adam_eps"),
    left_out("torch_adam_is_fused", kOneWay),
};

/// Writes the optimizer in one statement, from keys in different sections.
void write_optimizer(Mapper& mapper) {
  const auto number = [&](const char* path, double usual) { return nanotron_number(mapper, path, usual); };
  const bool has_factory = mapper.root().at("optimizer.optimizer_factory") != nullptr;
  const auto factory = [&](const std::string& key, double usual) {
    return number(("optimizer." + (has_factory ? "optimizer_factory." + key : key)).c_str(), usual);
  };
  mapper.out().write(
      fmt::format(
          "r.optimizer = t.optim.adamw {{ lr = {}, betas = {{ {}, {} }}, eps = {}, weight_decay = {}, "
          "decay_mask = \"all\" }}",
          number("optimizer.learning_rate_scheduler.learning_rate", 0), factory("adam_beta1", 0.9),
          factory("adam_beta2", 0.999), factory("adam_eps", 1e-8), number("optimizer.weight_decay", 0)),
      0);
}

/// Maps stage 1 of ZeRO, Nanotron's only one apart from 0: ranks share the optimizer's state.
void map_zero_stage(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "0") return mapper.remark(entry, "every rank holds the whole model");
  mapper.emit(entry, "parallel.dp_shard", "-1");
  mapper.emit(entry, "parallel.reshard_after_forward", "false");
  mapper.emit(entry, "parallel.keep_gradients", "true");
}

const Rows kOptimizer = {
    group("optimizer_factory", kFactory),
    // Beside it in files of Nanotron 0.3.
    elsewhere("adam_beta1"),
    elsewhere("adam_beta2"),
    elsewhere("adam_eps"),
    left_out("torch_adam_is_fused", kOneWay),
    by("zero_stage", map_zero_stage),
    left_out("weight_decay", "see optimizer at the end"),
    only("weight_decay_exclude_named_params", {"[]"},
         "write param_groups = { { match = \"...\", weight_decay = 0 } } into the recipe instead"),
    by("clip_grad", map_clip),
    left_out("accumulate_grad_in_fp32", "gradients are fp32"),
    by("learning_rate_scheduler", map_schedule, kSchedule),
};

void map_checkpoints_path(Mapper& mapper, const DocEntry& entry) {
  mapper.emit(entry, "run_dir", mapper.expression_with(entry, "/{run_name}"));
}

/// Maps the checkpoint to resume from. A run resumes from its own folder in any case.
void map_resume(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "a run resumes from its newest checkpoint");
  const DocNode* own = mapper.root().at("checkpoints.checkpoints_path");
  if (own != nullptr && mapper.text_of(own) == mapper.text_of(&entry.node))
    return mapper.remark(entry, "a run resumes from its newest checkpoint there");
  mapper.problem(entry, "resume = PATH takes a Tycho checkpoint");
}

void map_run(Mapper& mapper, const DocEntry& entry) {
  const std::string name = mapper.text_of(&entry.node);
  if (name.find('%') != std::string::npos) return mapper.remark(entry, "the recipe's name");
  mapper.emit(entry, "run_name", mapper.expression(entry));
}

/// Maps the project. Nanotron sends metrics to W&B where it is installed.
void map_project(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "no project of W&B");
  mapper.note(entry, kOfflineWandb);
  open_sinks(mapper, entry);
  mapper.out().write(
      fmt::format("t.log.wandb {{ project = {}, names = \"nanotron\" }},", mapper.expression(entry)),
      entry.node.line, "", entry.node.place());
  mapper.out().close("}");
}

/// Maps the mode of tensor parallelism, whose names Nanotron reads in upper and lower case.
void map_tp_mode(Mapper& mapper, const DocEntry& entry) {
  const std::string mode = mapper.text_of(&entry.node);
  const bool scatters = mode == "REDUCE_SCATTER" || mode == "reduce_scatter";
  if (!scatters && mode != "ALL_REDUCE" && mode != "all_reduce")
    return mapper.problem(entry, "expected REDUCE_SCATTER or ALL_REDUCE");
  mapper.emit(entry, "parallel.sequence_parallel", scatters ? "true" : "false", mode);
}

/// Maps the pipeline engine, by Nanotron's names.
void map_pp_engine(Mapper& mapper, const DocEntry& entry) {
  const std::string engine = mapper.text_of(&entry.node);
  const DocNode* stages = mapper.root().at("parallelism.pp");
  if (stages == nullptr || mapper.text_of(stages) == "1") return mapper.remark(entry, "there are no stages");
  if (engine == "1f1b") return mapper.emit(entry, "parallel.pp_schedule", "\"1f1b\"");
  if (engine == "afab") return mapper.emit(entry, "parallel.pp_schedule", "\"gpipe\"");
  mapper.problem(entry, "expected 1f1b or afab");
}

Rows make_rows() {
  return {
      group("general", {by("project", map_project), by("run", map_run), to("seed", "seed"),
                        left_out("step", kComputed), left_out("consumed_train_samples", kComputed),
                        left_out("benchmark_csv_path", kConsole), left_out("ignore_sanity_checks", kOneWay)}),
      group(
          "parallelism",
          {left_out("dp", "see global_batch at the end"), to("pp", "parallel.pp"), to("tp", "parallel.tp"),
           by("pp_engine", map_pp_engine), by("tp_mode", map_tp_mode),
           left_out("tp_linear_async_communication", kSpread), left_out("tp_recompute_allgather", kSpread),
           by("recompute_layer", map_full_recompute), left_out("moe_layer_recompute", "there are no experts"),
           only("expert_parallel_size", {"1"}, "mixtures of experts are not supported"),
           to("context_parallel_size", "parallel.cp")}),
      group("model", kModel),
      group("tokenizer", {by("tokenizer_name_or_path", emit_tokenizer),
                          only("tokenizer_revision", {"null"},
                               "write it into the name: tokenizer_name_or_path: hf://OWNER/NAME@REVISION"),
                          left_out("tokenizer_max_length", kOneWay)}),
      group("tokens", kTokens),
      group("optimizer", kOptimizer),
      by("data_stages", map_nanotron_stages),
      group("checkpoints",
            {by("checkpoints_path", map_checkpoints_path),
             to("checkpoint_interval", "ckpt.every", count_of("ba")),
             noted("save_initial_state", {"false"}, "the first checkpoint follows from ckpt.every"),
             left_out("save_final_state", "always"), by("resume_checkpoint_path", map_resume),
             left_out("load_lr_scheduler", kOneWay), left_out("load_optimizer", kOneWay),
             left_out("checkpoints_path_is_shared_file_system", kOneWay)}),
      left_out("logging", kConsole),
      noted("metrics_logging", {"null"}, "statistics of single layers are not recorded"),
      nanotron_profiler_row(),
      only("lighteval", {"null"}, "is not supported"),
      only("s3_upload", {"null"}, "set ckpt.remote, which uploads checkpoints to a store"),
  };
}

void write_the_rest(Mapper& mapper) {
  const auto number = [&](const char* path) { return nanotron_number(mapper, path, 1); };
  const double batch = number("tokens.micro_batch_size") * number("tokens.batch_accumulation_per_replica") *
                       number("parallelism.dp");
  mapper.out().write("", 0);
  mapper.out().write(fmt::format("r.global_batch = \"{}sp\"  -- micro_batch_size x "
                                 "batch_accumulation_per_replica x dp",
                                 batch),
                     0);
  write_optimizer(mapper);
  write_nanotron_stages(mapper);
}

}  // namespace

const Rows& nanotron_rows() {
  static const Rows rows = make_rows();
  return rows;
}

void map_nanotron(Mapper& mapper) {
  mapper.walk_top(nanotron_rows());
  write_the_rest(mapper);
}

}  // namespace tycho
