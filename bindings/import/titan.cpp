// TorchTitan's TOML (v0.2) -> a recipe.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include <fmt/ranges.h>

#include "bindings/import/systems.h"

namespace tycho {

std::string titan_value(Mapper& mapper, const char* path, const char* usual) {
  const DocNode* node = mapper.root().at(path);
  return mapper.is_null(node) ? usual : mapper.text_of(node);
}

namespace {

const char* const kSpread = "Tycho chooses how ranks communicate";
const char* const kMemory = "Tycho manages memory itself";
const char* const kOneWay = "Tycho has only one way to do this";

/// Shapes of Llama 3 and 3.1, by flavor: width, layers, heads, kv_heads, ffn_width, vocab_size.
struct Flavor {
  const char* name;
  std::array<int, 6> shape;
  bool tied = false;
};
constexpr Flavor kFlavors[] = {
    {"debugmodel", {256, 6, 16, 16, 768, 2048}},   {"1B", {2048, 16, 32, 8, 8192, 128256}, true},
    {"3B", {3072, 28, 24, 8, 8192, 128256}, true}, {"8B", {4096, 32, 32, 8, 14336, 128256}},
    {"70B", {8192, 80, 64, 8, 28672, 128256}},     {"405B", {16384, 126, 128, 8, 53248, 128256}}};

const Rows kModel = {
    elsewhere("name"),           elsewhere("flavor"),
    elsewhere("hf_assets_path"), elsewhere("tokenizer_path"),
    titan_converters_row(),      left_out("print_after_conversion", "the run says what is converted")};

void map_model(Mapper& mapper, const DocEntry& entry) {
  const std::string family = titan_value(mapper, "model.name", "llama3");
  const std::string name = titan_value(mapper, "model.flavor", "debugmodel");
  const auto flavor = std::find_if(std::begin(kFlavors), std::end(kFlavors),
                                   [&](const Flavor& one) { return name == one.name; });
  if (family != "llama3" || flavor == std::end(kFlavors)) {
    mapper.problem(
        entry, fmt::format("expected llama3 in the flavors debugmodel, 1B, 3B, 8B, 70B or 405B, found {} {}",
                           family, name));
    return mapper.walk(entry, kModel);
  }
  const auto& [width, layers, heads, kv_heads, ffn_width, vocab_size] = flavor->shape;
  std::vector<std::string> fields = {
      fmt::format("width = {}, layers = {}, heads = {}, kv_heads = {}", width, layers, heads, kv_heads),
      fmt::format("ffn_width = {}, vocab_size = {}", ffn_width, vocab_size),
      "rope_scaling = { type = \"llama3\", factor = 8, low_freq_factor = 1, high_freq_factor = 4, "
      "original_max_seq_len = 8192 }"};
  if (flavor->tied) fields.emplace_back("tied = true");
  fields.emplace_back("init = \"torchtitan\"");
  mapper.component(entry, "model", "t.model.llama", kModel, fields);
  write_titan_fp8(mapper);
  for (const char* key : {"hf_assets_path", "tokenizer_path"}) {
    if (const DocNode* path = entry.node.find(key); !mapper.is_null(path))
      emit_titan_tokenizer(mapper, {entry.path + "." + key, *path});
  }
}

const Rows kOptimizer = {
    only("name", {"AdamW"}, "Tycho has AdamW of TorchTitan's optimizers"),
    to("lr", "lr"),
    elsewhere("beta1"),
    elsewhere("beta2"),
    to("eps", "eps"),
    to("weight_decay", "weight_decay"),
    left_out("implementation", kOneWay),
    only("early_step_in_backward", {"false"}, "is not supported"),
};

/// Returns the fields for TorchTitan's defaults of absent keys, which differ from Tycho's.
std::vector<std::string> optimizer_defaults(Mapper& mapper) {
  std::vector<std::string> fields = {
      fmt::format("betas = {{ {}, {} }}", titan_value(mapper, "optimizer.beta1", "0.9"),
                  titan_value(mapper, "optimizer.beta2", "0.95")),
      "decay_mask = \"all\""};
  if (mapper.root().at("optimizer.lr") == nullptr) fields.emplace_back("lr = 8e-4");
  if (mapper.root().at("optimizer.weight_decay") == nullptr) fields.emplace_back("weight_decay = 0.1");
  return fields;
}

/// Returns 0 for text that is not a number, infinity for a number that is too large.
double count_in(const std::string& text) { return std::strtod(("0" + text).c_str(), nullptr); }

/// Maps the warm-up. As in TorchTitan, one longer than the schedule ends with it.
void map_warmup(Mapper& mapper, const DocEntry& entry) {
  const std::string run = titan_value(mapper, "training.steps", "10000");
  const std::string total = titan_value(mapper, "lr_scheduler.total_steps", run.c_str());
  if (count_in(mapper.text_of(&entry.node)) <= count_in(total))
    return to("", "t_warmup", count_of("ba")).act(mapper, entry);
  mapper.emit(entry, "t_warmup", lua_quoted(total + "ba"));
  mapper.note(entry,
              "the warm-up is longer than the run: it takes all " + total + " steps, as in TorchTitan");
}

const Rows kScheduler = {
    by("warmup_steps", map_warmup), elsewhere("total_steps"),       elsewhere("decay_ratio"),
    to("decay_type", "decay_type"), to("min_lr_factor", "alpha_f"),
};

/// Returns t_decay, and t_max when the schedule is not as long as the run.
std::vector<std::string> decay_fields(Mapper& mapper) {
  const std::string run = titan_value(mapper, "training.steps", "10000");
  const std::string total = titan_value(mapper, "lr_scheduler.total_steps", run.c_str());
  const double steps = count_in(total);
  const double warmup = std::min(steps, count_in(titan_value(mapper, "lr_scheduler.warmup_steps", "200")));
  const std::string ratio = titan_value(mapper, "lr_scheduler.decay_ratio", "");
  const double share = ratio.empty() ? steps : std::round(steps * count_in(ratio));
  std::vector<std::string> fields = {fmt::format("t_decay = \"{:.0f}ba\"", std::min(share, steps - warmup))};
  if (total != run) fields.push_back(fmt::format("t_max = \"{:.0f}ba\"", steps));
  if (mapper.root().at("lr_scheduler.warmup_steps") == nullptr)
    fields.push_back(fmt::format("t_warmup = \"{:.0f}ba\"", warmup));
  return fields;
}

void map_global_batch(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "-1")
    return mapper.remark(entry, "local_batch_size times the number of ranks: see the end");
  to("", "global_batch", count_of("sp")).act(mapper, entry);
}

void map_dtype(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "float32") return mapper.remark(entry, "the default");
  if (mapper.text_of(&entry.node) == "bfloat16") return mapper.emit(entry, "master_weights", "\"none\"");
  mapper.problem(entry, "Tycho has float32 and bfloat16");
}

bool has_stages(Mapper& mapper) {
  return titan_value(mapper, "parallelism.pipeline_parallel_degree", "1") != "1";
}

void map_local_batch(Mapper& mapper, const DocEntry& entry) {
  if (has_stages(mapper))
    return mapper.remark(entry, "with stages micro-batches are of pipeline_parallel_microbatch_size");
  to("", "micro_batch", count_of("sp")).act(mapper, entry);
}

/// Maps the steps. A run that ends before its schedule is a part of a longer run in Tycho.
void map_steps(Mapper& mapper, const DocEntry& entry) {
  const std::string total = titan_value(mapper, "lr_scheduler.total_steps", "");
  if (count_in(total) <= count_in(mapper.text_of(&entry.node)))
    return to("", "max_duration", count_of("ba")).act(mapper, entry);
  mapper.emit(entry, "max_duration", lua_quoted(total + "ba"), "lr_scheduler.total_steps");
  mapper.note(entry, fmt::format("ends before the schedule, so max_duration is {}ba: `tycho run FILE --until "
                                 "{}ba` ends where TorchTitan does",
                                 total, mapper.text_of(&entry.node)));
}

const Rows kTraining = {
    left_out("dataset", "see train_data at the end"),
    left_out("dataset_path", "see train_data at the end"),
    by("local_batch_size", map_local_batch),
    by("global_batch_size", map_global_batch),
    to("seq_len", "seq_len"),
    to("max_norm", "clip.norm"),
    by("steps", map_steps),
    only("enable_cpu_offload", {"false"}, "is not supported"),
    by("dtype", map_dtype),
    to("mixed_precision_param", "precision", words({{"bfloat16", "bf16"}, {"float32", "fp32"}})),
    to("mixed_precision_reduce", "parallel.reduce_dtype", words({{"bfloat16", "bf16"}, {"float32", "fp32"}})),
    left_out("gc_freq", "there is no garbage collector"),
    left_out("gc_debug", "there is no garbage collector"),
    left_out("dataloader", "Tycho has its own loader"),
};

void map_recompute(Mapper& mapper, const DocEntry& entry) {
  const std::string mode = mapper.text_of(&entry.node);
  const std::string option = titan_value(mapper, "activation_checkpoint.selective_ac_option", "2");
  if (mode == "none") return mapper.remark(entry, "the default");
  if (mode == "full") return mapper.emit(entry, "recompute.mode", "\"full\"");
  if (mode == "selective" && option == "op") return mapper.emit(entry, "recompute.mode", "\"selective\"");
  if (mode == "selective")
    return mapper.emit(entry, "recompute", "{ mode = \"full\", every = " + option + " }");
  mapper.problem(entry, "Tycho has none, norms, selective and full");
}

const Rows kCheckpoint = {
    noted("enable", {"true"}, "runs always save checkpoints; see ckpt.every"),
    left_out("folder", "checkpoints are in the run folder"),
    to("interval", "ckpt.every", count_of("ba")),
    to("keep_latest_k", "ckpt.keep"),
    only("initial_load_path", {"null", ""},
         "resume = PATH takes a Tycho checkpoint; t.model.hf takes a Hugging Face folder"),
    left_out("initial_load_model_only", "nothing is loaded"),
    left_out("initial_load_in_hf_quantized", "nothing is loaded"),
    left_out("enable_ft_dataloader_checkpoints", "the position in the data is kept"),
    only("initial_load_in_hf", {"false"}, "write r.model = t.model.hf { path = ... } into the recipe"),
    left_out("last_save_model_only", "the last checkpoint can be resumed from"),
    noted("last_save_in_hf", {"false"}, "is not written: tycho convert exports any checkpoint"),
    left_out("export_dtype", "tycho convert --dtype"),
    left_out("async_mode", "checkpoints are written while training continues"),
    only("load_step", {"-1"}, "resume = PATH takes a checkpoint"),
    only("exclude_from_loading", {"[]"}, "is not supported"),
    noted("enable_first_step_checkpoint", {"false"}, "the first checkpoint follows from ckpt.every"),
    only("create_seed_checkpoint", {"false"}, "is not supported"),
    only("load_only", {"false"}, "is not supported"),
};

std::optional<std::string> reshard_policy(Mapper& mapper, const DocEntry& entry) {
  const std::string policy = mapper.text_of(&entry.node);
  if (policy == "never") return "false";
  if (policy == "default" || policy == "always") return "true";
  mapper.problem(entry, "expected default, always or never");
  return std::nullopt;
}

/// Maps the pipeline schedule. TorchTitan has two chunks per stage unless the file sets their layers.
void map_pp_schedule(Mapper& mapper, const DocEntry& entry) {
  if (!has_stages(mapper)) return mapper.remark(entry, "there are no stages");
  const std::string schedule = mapper.text_of(&entry.node);
  if (schedule == "1F1B") return mapper.emit(entry, "parallel.pp_schedule", "\"1f1b\"");
  if (schedule == "GPipe") return mapper.emit(entry, "parallel.pp_schedule", "\"gpipe\"");
  if (schedule != "Interleaved1F1B")
    return mapper.problem(entry, "Tycho has 1F1B, GPipe and Interleaved1F1B");
  mapper.emit(entry, "parallel.pp_schedule", "\"interleaved\"");
  mapper.emit(entry, "parallel.pp_chunks", "2");
}

void map_pp_micro_batch(Mapper& mapper, const DocEntry& entry) {
  if (!has_stages(mapper)) return mapper.remark(entry, "there are no stages");
  to("", "micro_batch", count_of("sp")).act(mapper, entry);
}

void map_layers_per_stage(Mapper& mapper, const DocEntry& entry) {
  if (!has_stages(mapper) || mapper.is_null(&entry.node)) return mapper.remark(entry, "there are no stages");
  mapper.note(entry, "parts have about the same work here; parallel.pp_chunks and pp_layers say it by hand");
}

const char* const kWork = "parts of the model have about the same work";

void map_rotate_method(Mapper& mapper, const DocEntry& entry) {
  const std::string method = mapper.text_of(&entry.node);
  if (method == "allgather") return mapper.remark(entry, "keys and values are gathered");
  if (method != "alltoall") return mapper.problem(entry, "TorchTitan has allgather and alltoall");
  if (titan_value(mapper, "parallelism.context_parallel_degree", "1") == "1")
    return mapper.remark(entry, "no ranks share sequences");
  mapper.emit(entry, "parallel.cp_attention", "\"ring\"");
}

const Rows kParallelism = {
    to("data_parallel_replicate_degree", "parallel.dp_replicate"),
    to("data_parallel_shard_degree", "parallel.dp_shard"),
    to("fsdp_reshard_after_forward", "parallel.reshard_after_forward", reshard_policy),
    to("tensor_parallel_degree", "parallel.tp"),
    left_out("disable_loss_parallel", kSpread),
    left_out("enable_async_tensor_parallel", kSpread),
    to("pipeline_parallel_degree", "parallel.pp"),
    by("pipeline_parallel_schedule", map_pp_schedule),
    by("pipeline_parallel_microbatch_size", map_pp_micro_batch),
    by("pipeline_parallel_layers_per_stage", map_layers_per_stage),
    left_out("pipeline_parallel_first_stage_less_layers", kWork),
    left_out("pipeline_parallel_last_stage_less_layers", kWork),
    only("pipeline_parallel_schedule_csv", {"", "null"},
         "is not read: parallel.pp_schedule names a schedule"),
    only("module_fqns_per_model_part", {"null"}, "is not supported: parallel.pp_layers divides the model"),
    left_out("pipeline_parallel_expert_parallel_overlap", kSpread),
    left_out("context_parallel_load_balancer", kSpread),
    left_out("expert_parallel_comm_backend", kSpread),
    to("context_parallel_degree", "parallel.cp"),
    by("context_parallel_rotate_method", map_rotate_method),
    only("expert_parallel_degree", {"1"}, "mixtures of experts are not supported"),
    only("expert_tensor_parallel_degree", {"1"}, "mixtures of experts are not supported"),
};

void map_dump_folder(Mapper& mapper, const DocEntry& entry) {
  mapper.emit(entry, "run_dir", mapper.expression_with(entry, "/{run_name}"));
}

Rows make_rows() {
  return {
      group("job", {left_out("config_file", "it is this one"), by("dump_folder", map_dump_folder),
                    left_out("description", "use a comment instead"),
                    left_out("print_config", "tycho config shows it"),
                    left_out("save_config_file", "it is in the run folder"),
                    only("custom_config_module", {"", "null"}, "Python cannot be loaded")}),
      titan_profiling_row(),
      titan_metrics_row(),
      by("model", map_model, kModel),
      by(
          "optimizer",
          [](Mapper& mapper, const DocEntry& entry) {
            mapper.component(entry, "optimizer", "t.optim.adamw", kOptimizer, optimizer_defaults(mapper));
          },
          kOptimizer),
      by(
          "lr_scheduler",
          [](Mapper& mapper, const DocEntry& entry) {
            mapper.component(entry, "scheduler", "t.sched.wsd", kScheduler, decay_fields(mapper));
          },
          kScheduler),
      group("training", kTraining),
      group("parallelism", kParallelism),
      group("checkpoint", kCheckpoint),
      group("activation_checkpoint",
            {by("mode", map_recompute), left_out("selective_ac_option", "see recompute"),
             left_out("per_op_sac_force_recompute_mm_shapes_by_fqns", kOneWay),
             left_out("early_stop", kOneWay), left_out("memory_budget", kMemory),
             left_out("visualize_memory_budget_pareto", kMemory), left_out("determinism_check", kOneWay),
             left_out("debug", kOneWay), left_out("preserve_rng_state", kOneWay)}),
      left_out("compile", "there is nothing to compile"),
      titan_quantize_row(),
      left_out("comm", kSpread),
      group("validation",
            {only("enable", {"false"}, "set eval_data.NAME, eval.every and eval.batches in the recipe"),
             left_out("dataset", "is off"), left_out("dataset_path", "is off"),
             left_out("local_batch_size", "is off"), left_out("seq_len", "is off"),
             left_out("freq", "is off"), left_out("steps", "is off"), left_out("dataloader", "is off")}),
      left_out("memory_estimation", "use tycho plan"),
      group("fault_tolerance",
            {only("enable", {"false"}, "is not supported"), left_out("process_group", "is off"),
             left_out("process_group_timeout_ms", "is off"), left_out("replica_id", "is off"),
             left_out("group_size", "is off"), left_out("min_replica_size", "is off"),
             only("semi_sync_method", {"null", ""}, "is not supported")}),
      group("experimental", {only("custom_import", {"", "null"}, "Python cannot be loaded"),
                             only("custom_args_module", {"", "null"}, "Python cannot be loaded")}),
      group("debug", {to("seed", "seed"), left_out("deterministic", "see attention"),
                      left_out("deterministic_warn_only", "always the case"),
                      left_out("moe_force_load_balance", "there are no experts")}),
  };
}

/// Writes local_batch_size times the ranks that the file names, or for one rank when it does not name them.
void write_global_batch(Mapper& mapper) {
  const double local = count_in(titan_value(mapper, "training.local_batch_size", "8"));
  const double replicas = count_in(titan_value(mapper, "parallelism.data_parallel_replicate_degree", "1"));
  const std::string shards = titan_value(mapper, "parallelism.data_parallel_shard_degree", "-1");
  const double ranks = replicas * (shards == "-1" ? 1 : count_in(shards));
  mapper.out().write(fmt::format("r.global_batch = \"{}sp\"  -- training.local_batch_size x {} rank{}",
                                 local * ranks, ranks, ranks == 1 ? "" : "s"),
                     0);
  const DocNode* training = mapper.root().find("training");
  if (shards == "-1")
    mapper.note(
        {"training.global_batch_size", training == nullptr ? mapper.root() : *training},
        fmt::format("is not set: TorchTitan takes local_batch_size times the number of ranks; on N ranks "
                    "write {} x N into r.global_batch",
                    local * ranks));
}

/// Writes TorchTitan's defaults for keys that the file does not set.
void write_defaults(Mapper& mapper) {
  LuaWriter& out = mapper.out();
  const auto absent = [&](const char* path) { return mapper.root().at(path) == nullptr; };
  out.write("", 0);
  out.write("-- TorchTitan's defaults for what the file does not set:", 0);
  if (absent("optimizer"))
    out.write("r.optimizer = t.optim.adamw { lr = 8e-4, weight_decay = 0.1, decay_mask = \"all\" }", 0);
  if (absent("lr_scheduler"))
    out.write(fmt::format("r.scheduler = t.sched.wsd {{ {} }}", fmt::join(decay_fields(mapper), ", ")), 0);
  const std::pair<const char*, const char*> defaults[] = {
      {"training.seq_len", "r.seq_len = 2048"},
      {"training.mixed_precision_param", "r.precision = \"bf16\""},
      {"parallelism.data_parallel_shard_degree", "r.parallel.dp_shard = -1"},
      {"activation_checkpoint.mode", "r.recompute = { mode = \"full\", every = 2 }"}};
  for (const auto& [path, line] : defaults)
    if (absent(path)) out.write(line, 0);
  if (absent("training.steps")) {
    // A schedule that is longer makes the run a part of a longer one, as in map_steps.
    const double total = count_in(titan_value(mapper, "lr_scheduler.total_steps", "0"));
    out.write(
        fmt::format(
            "r.max_duration = \"{:.0f}ba\"{}", std::max(10000.0, total),
            total > 10000 ? "  -- lr_scheduler.total_steps; --until 10000ba ends where TorchTitan does" : ""),
        0);
  }
  const char* size =
      has_stages(mapper) ? "parallelism.pipeline_parallel_microbatch_size" : "training.local_batch_size";
  if (absent(size)) out.write(has_stages(mapper) ? "r.micro_batch = \"1sp\"" : "r.micro_batch = \"8sp\"", 0);
  if (titan_value(mapper, "training.global_batch_size", "-1") == "-1") write_global_batch(mapper);
  out.write(
      "r.train_data = t.data.mds { local_dir = t.env(\"TYCHO_DATA\", \"data/c4\") }  -- made by: tycho data "
      "convert",
      0);
}

}  // namespace

const Rows& titan_rows() {
  static const Rows rows = make_rows();
  return rows;
}

void map_titan(Mapper& mapper) {
  if (mapper.root().find("model") == nullptr)
    mapper.problem({"model", mapper.root()}, "expected a section [model] with name and flavor");
  mapper.walk_top(titan_rows());
  write_defaults(mapper);
}

}  // namespace tycho
