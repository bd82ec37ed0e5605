// The systems that recipes can be imported from: one table of keys each.
#pragma once
#include "bindings/import/document.h"
#include "bindings/import/mapper.h"
#include "trainer/base/json.h"

namespace tycho {

/// LLM Foundry's train YAML.
const Rows& foundry_rows();
void map_foundry(Mapper& mapper);

/// TorchTitan's TOML, v0.2, and the JSON that it saves of a config.
const Rows& titan_rows();
void map_titan(Mapper& mapper);
/// The value at a path, or what TorchTitan takes when it is not there.
std::string titan_value(Mapper& mapper, const char* path, const char* usual);
Row titan_metrics_row();
/// Whether this is a config that TorchTitan saved as JSON.
bool is_titan_json(const Json& json);
/// Gives a config of the versions after v0.2 the keys of v0.2, as far as these have them.
void use_titan_keys(DocNode& root);
/// What TorchTitan's other versions mean by a key that v0.2 does not have, and what to write; "" for no key
/// of theirs.
std::string titan_key_elsewhere(const std::string& path);

/// Nanotron's YAML.
const Rows& nanotron_rows();
void map_nanotron(Mapper& mapper);

/// A number at a path; notes a problem and gives `usual` when it is none.
double nanotron_number(Mapper& mapper, const char* path, double usual);
/// Its data_stages: what is wrong with them, and, after the keys of the file, r.train_data and r.data_stages.
void map_nanotron_stages(Mapper& mapper, const DocEntry& entry);
void write_nanotron_stages(Mapper& mapper);

/// LLM Foundry's `model:`, by its name.
const Rows& foundry_model_rows();
void map_foundry_model(Mapper& mapper, const DocEntry& entry);

/// Whether a name is a folder's path, and none of the hub: by how it begins, or because it is there.
bool is_local_folder(const std::string& name);
/// Whether a path is that of a tokenizer's own file.
bool is_tokenizer_file(const std::string& name);
/// Whether a name is the path of a tokenizer: of a folder with it, or of its own file.
bool is_local_tokenizer(const std::string& name);
/// tokenizer_config.json of the folder that an LLM Foundry YAML names; empty where there is none, and null
/// for a tokenizer of the hub. It has chat_template wherever the folder has one.
Json foundry_tokenizer_config(Mapper& mapper);
/// r.tokenizer, from the path of a tokenizer.
void emit_tokenizer(Mapper& mapper, const DocEntry& entry);

/// Its optimizer, scheduler and algorithms.
Row foundry_optimizer_row();
Row foundry_scheduler_row();
Row foundry_algorithms_row();
/// Its callbacks and loggers.
Row foundry_callbacks_row();
Row foundry_loggers_row();

/// The note for loggers that send metrics to a service.
inline constexpr const char* kNoLogger =
    "nothing is sent there: metrics are in the run folder's metrics.jsonl";

/// The note for a logger that becomes t.log.wandb.
inline constexpr const char* kOfflineWandb =
    "runs are written offline here: upload them with `wandb sync`, during the run or after it";

/// The reason for what has no effect where eval_interval is 0.
inline constexpr const char* kNeverEvaluated = "eval_interval is 0: nothing is evaluated";

/// r.log.sinks = { t.log.jsonl {}, and what is written before close("}").
void open_sinks(Mapper& mapper, const DocEntry& entry);
/// constructor { rows, last_fields }, as an item of a list.
void list_component(Mapper& mapper, const DocEntry& entry, const std::string& constructor, const Rows& rows,
                    const std::vector<std::string>& last_fields);

/// Its `init_config:`.
Row foundry_init_row();
/// Its `block_overrides:`.
Row foundry_blocks_row();
/// Its `peft_config:` of hf_causal_lm, which stands in `model:` and is written beside the model, after it.
Row foundry_peft_row();
/// icl_tasks, eval_gauntlet and their lengths, as r.icl.
Rows foundry_icl_rows();
void map_foundry_peft(Mapper& mapper, const DocEntry& model);
/// For a model that starts anew, which has none.
void refuse_foundry_peft(Mapper& mapper, const DocEntry& model);

/// LLM Foundry's train_loader, and its eval_loader or eval_loaders; `target` is train_data or a set of
/// eval_data.
Rows foundry_loader_rows();
/// token_encoding_type of `dataset`: which numbers the bytes of a column are.
Row foundry_token_encoding();
/// The keys of `dataset` of a finetuning loader.
const Rows& foundry_chat_rows();
/// What such a loader takes from the tokenizer, and from defaults that are others here.
std::vector<std::string> foundry_chat_fields(Mapper& mapper, const DocEntry& loader);
void map_foundry_loader(Mapper& mapper, const DocEntry& entry, const std::string& target);
void map_foundry_eval_loaders(Mapper& mapper, const DocEntry& entry);
/// eval_loader, eval_loaders, eval_interval, eval_first and eval_subset_num_batches.
Rows foundry_eval_rows();
/// r.eval.every where the YAML leaves eval_interval out.
void write_foundry_eval_default(Mapper& mapper);
/// Whether an interval of Composer's is 0 or less, which means never.
bool foundry_is_never(Mapper& mapper, const DocNode* interval);
/// False where eval_interval is 0, which turns evaluations off.
bool foundry_evaluates(Mapper& mapper);
/// LLM Foundry's attn_uses_sequence_id of an MPT or a model of Hugging Face; null when it is not there.
const DocNode* foundry_sequence_ids(Mapper& mapper);
/// True for s3://bucket/folder and its like.
bool is_remote_place(const std::string& place);

/// The profiler of each, as t.profile.
Row foundry_profiler_row();
Row titan_profiling_row();
Row nanotron_profiler_row();

/// A recipe whose model is what a config.json of Hugging Face describes; the rest is t.required.
std::string recipe_of_hf_config(const Json& json, const std::string& name, const std::string& place,
                                std::vector<std::string>& notes);

}  // namespace tycho
