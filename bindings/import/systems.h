// The systems that recipes can be imported from: one table of keys each.
#pragma once
#include "bindings/import/document.h"
#include "bindings/import/mapper.h"
#include "trainer/base/json.h"

namespace tycho {

/// LLM Foundry's train YAML.
const Rows& foundry_rows();
void map_foundry(Mapper& mapper);

/// TorchTitan's TOML, v0.2.
const Rows& titan_rows();
void map_titan(Mapper& mapper);

/// Nanotron's YAML.
const Rows& nanotron_rows();
void map_nanotron(Mapper& mapper);

/// LLM Foundry's `model:`, by its name.
const Rows& foundry_model_rows();
void map_foundry_model(Mapper& mapper, const DocEntry& entry);

/// Whether a name is a folder's path, and none of the hub: by how it begins, or because it is there.
bool is_local_folder(const std::string& name);
/// Whether a path is that of a tokenizer's own file.
bool is_tokenizer_file(const std::string& name);
/// Whether a name is the path of a tokenizer: of a folder with it, or of its own file.
bool is_local_tokenizer(const std::string& name);
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
/// The keys of `dataset` of a finetuning loader.
const Rows& foundry_chat_rows();
void map_foundry_loader(Mapper& mapper, const DocEntry& entry, const std::string& target);
void map_foundry_eval_loaders(Mapper& mapper, const DocEntry& entry);
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
