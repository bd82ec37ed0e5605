// The systems that recipes can be imported from: one table of keys each.
#pragma once
#include "bindings/import/document.h"
#include "bindings/import/mapper.h"
#include "trainer/base/json.h"

namespace tycho {

/// Maps LLM Foundry's train YAML.
const Rows& foundry_rows();
void map_foundry(Mapper& mapper);

/// Maps TorchTitan's TOML, v0.2, and the JSON in which it saves a config.
const Rows& titan_rows();
void map_titan(Mapper& mapper);
/// Returns the value at a path, or TorchTitan's default when it is absent.
std::string titan_value(Mapper& mapper, const char* path, const char* usual);
Row titan_metrics_row();
/// Map the converters of a model, and the sections that they read; write_titan_fp8 writes r.fp8.
Row titan_converters_row();
Row titan_quantize_row();
void write_titan_fp8(Mapper& mapper);
/// Returns true for a config that TorchTitan saved as JSON.
bool is_titan_json(const Json& json);
/// Converts a config of a version after v0.2 to the keys of v0.2, as far as they exist.
void use_titan_keys(DocNode& root);
/// Returns the meaning of a key that only other versions of TorchTitan have, and what to write; "" for other
/// keys.
std::string titan_key_elsewhere(const std::string& path);

/// Maps Nanotron's YAML.
const Rows& nanotron_rows();
void map_nanotron(Mapper& mapper);

/// Returns the number at a path. Adds a problem and returns `usual` when it is no number.
double nanotron_number(Mapper& mapper, const char* path, double usual);
/// Map data_stages: report its problems, and, after the keys of the file, write r.train_data and
/// r.data_stages.
void map_nanotron_stages(Mapper& mapper, const DocEntry& entry);
void write_nanotron_stages(Mapper& mapper);

/// Maps true to full recomputation, as LLM Foundry and Nanotron mean it.
void map_full_recompute(Mapper& mapper, const DocEntry& entry);

/// Maps LLM Foundry's `model:`, by its name.
const Rows& foundry_model_rows();
void map_foundry_model(Mapper& mapper, const DocEntry& entry);

/// Returns true when a name is the path of a folder and not a name of the hub: by its beginning, or because
/// it exists.
bool is_local_folder(const std::string& name);
/// Returns true for the path of a tokenizer's own file.
bool is_tokenizer_file(const std::string& name);
/// Returns true for the path of a tokenizer: a folder that contains it, or its own file.
bool is_local_tokenizer(const std::string& name);
/// Returns tokenizer_config.json of the folder that an LLM Foundry YAML names; an empty object when there is
/// none, null for a tokenizer of the hub. It has chat_template whenever the folder has one.
Json foundry_tokenizer_config(Mapper& mapper);
/// Writes r.tokenizer from the path of a tokenizer, or from a name of the hub with or without hf://.
void emit_tokenizer(Mapper& mapper, const DocEntry& entry);
/// Writes r.tokenizer from a text that is a path unless it begins with hf://.
void emit_tokenizer_path(Mapper& mapper, const DocEntry& entry);
/// Writes r.tokenizer from TorchTitan's folder of a tokenizer. assets/hf/NAME is where its
/// download_hf_assets.py puts files of the hub: if it is not here, their repository takes its place.
void emit_titan_tokenizer(Mapper& mapper, const DocEntry& entry);

/// Maps LLM Foundry's optimizer, scheduler and algorithms.
Row foundry_optimizer_row();
Row foundry_scheduler_row();
Row foundry_algorithms_row();
/// Maps LLM Foundry's callbacks and loggers.
Row foundry_callbacks_row();
Row foundry_loggers_row();

/// Note for loggers that send metrics to a service.
inline constexpr const char* kNoLogger =
    "nothing is sent there: metrics are in the run folder's metrics.jsonl";

/// Note for a logger that becomes t.log.wandb.
inline constexpr const char* kOfflineWandb =
    "runs are written offline here: upload them with `wandb sync`, during the run or after it";

/// Reason for keys without effect when eval_interval is 0.
inline constexpr const char* kNeverEvaluated = "eval_interval is 0: nothing is evaluated";

/// Opens r.log.sinks = { t.log.jsonl {}, further sinks }; write them, then call close("}").
void open_sinks(Mapper& mapper, const DocEntry& entry);
/// Writes constructor { rows, last_fields } as an item of a list.
void list_component(Mapper& mapper, const DocEntry& entry, const std::string& constructor, const Rows& rows,
                    const std::vector<std::string>& last_fields);

/// Maps LLM Foundry's `init_config:`.
Row foundry_init_row();
/// Maps LLM Foundry's `block_overrides:`.
Row foundry_blocks_row();
/// Maps `peft_config:` of hf_causal_lm, which is inside `model:` and is written after the model.
Row foundry_peft_row();
/// Maps icl_tasks, eval_gauntlet and their lengths to r.icl.
Rows foundry_icl_rows();
void map_foundry_peft(Mapper& mapper, const DocEntry& model);
/// Reports peft_config for a model with new weights, which cannot have one.
void refuse_foundry_peft(Mapper& mapper, const DocEntry& model);

/// Map LLM Foundry's train_loader, and its eval_loader or eval_loaders; `target` is train_data or a set of
/// eval_data.
Rows foundry_loader_rows();
/// Maps token_encoding_type of `dataset`: the number format of a column's bytes.
Row foundry_token_encoding();
/// Maps the keys of `dataset` of a finetuning loader.
const Rows& foundry_chat_rows();
/// Returns the fields of such a loader that come from the tokenizer, and from defaults that differ here.
std::vector<std::string> foundry_chat_fields(Mapper& mapper, const DocEntry& loader);
void map_foundry_loader(Mapper& mapper, const DocEntry& entry, const std::string& target);
void map_foundry_eval_loaders(Mapper& mapper, const DocEntry& entry);
/// Maps eval_loader, eval_loaders, eval_interval, eval_first and eval_subset_num_batches.
Rows foundry_eval_rows();
/// Writes r.eval.every when the YAML leaves eval_interval out.
void write_foundry_eval_default(Mapper& mapper);
/// Returns true when an interval of Composer is 0 or less, which means never.
bool foundry_is_never(Mapper& mapper, const DocNode* interval);
/// Returns false when eval_interval is 0, which turns evaluations off.
bool foundry_evaluates(Mapper& mapper);
/// Returns LLM Foundry's attn_uses_sequence_id for an MPT or a Hugging Face model; null when it is absent.
const DocNode* foundry_sequence_ids(Mapper& mapper);
/// Returns true for s3://bucket/folder and the like.
bool is_remote_place(const std::string& place);

/// Map the profiler of each system to t.profile.
Row foundry_profiler_row();
Row titan_profiling_row();
Row nanotron_profiler_row();

/// Returns a recipe whose model is that of a Hugging Face config.json; all other required keys are
/// t.required.
std::string recipe_of_hf_config(const Json& json, const std::string& name, const std::string& place,
                                std::vector<std::string>& notes);

}  // namespace tycho
