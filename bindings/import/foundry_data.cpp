// LLM Foundry's data loaders -> t.data.*.
#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <set>

#include "bindings/import/systems.h"
#include "trainer/eval/sets.h"

namespace tycho {
namespace {

const char* const kLoader = "Tycho has its own loader";

/// Data is read where it is: `remote` when it is a folder, else `local`.
void map_remote(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the data is in local");
  if (is_remote_place(mapper.text_of(&entry.node)))
    return mapper.problem(
        entry,
        "reading from object stores is not supported: copy the data to a folder and leave remote empty");
  mapper.emit(entry, "local_dir", mapper.expression(entry));
}

void map_local(Mapper& mapper, const DocEntry& entry) {
  const std::string beside = entry.path.substr(0, entry.path.rfind('.'));
  const DocNode* remote = mapper.root().at(beside + ".remote");
  if (!mapper.is_null(remote)) return mapper.remark(entry, "read where it is, without a copy");
  if (mapper.is_null(&entry.node)) return mapper.problem(entry, "wanted the folder of the data");
  mapper.emit(entry, "local_dir", mapper.expression(entry));
}

void map_data_length(Mapper& mapper, const DocEntry& entry) {
  const DocNode* whole = mapper.root().find("max_seq_len");
  if (whole == nullptr || mapper.text_of(whole) == mapper.text_of(&entry.node))
    return mapper.remark(entry, "taken from r.seq_len");
  mapper.problem(entry, "differs from max_seq_len = " + mapper.text_of(whole) +
                            ": rows of a data set must be as long as the model's sequences");
}

/// Sequence ids are made there whenever the token is named, and used only when the model says so.
void map_separator(Mapper& mapper, const DocEntry& entry) {
  const DocNode* used = foundry_sequence_ids(mapper);
  if (mapper.is_null(&entry.node) || used == nullptr || mapper.text_of(used) != "true")
    return mapper.remark(entry, "attention spans the whole row: attn_uses_sequence_id is not set");
  const std::string key = entry.path.substr(entry.path.rfind('.') + 1);
  mapper.emit(entry, key, mapper.expression(entry));
}

/// Composer's "100k" too.
std::optional<std::string> epoch_samples(Mapper& mapper, const DocEntry& entry) {
  const DocScalar scalar = mapper.value(&entry.node);
  if (scalar.is(DocScalar::Kind::kInteger)) return mapper.expression(entry);
  static const std::map<char, double> kUnits = {{'k', 1e3}, {'m', 1e6}, {'b', 1e9}, {'t', 1e12}};
  const auto unit =
      kUnits.find(scalar.text.empty() ? ' ' : static_cast<char>(std::tolower(scalar.text.back())));
  char* end = nullptr;
  const double count = std::strtod(scalar.text.c_str(), &end);
  if (!entry.node.is_scalar() || unit == kUnits.end() || end != &scalar.text.back()) {
    mapper.problem(entry, "wanted a number of samples such as 100000 or 100k");
    return std::nullopt;
  }
  return fmt::format("{:.0f}", count * unit->second);
}

/// A batch that the last samples do not fill is a step there; evaluations take them here, too.
void map_drop_last(Mapper& mapper, const DocEntry& entry) {
  if (!entry.path.starts_with("train_loader")) return mapper.remark(entry, "evaluations take every sample");
  if (mapper.text_of(&entry.node) != "false") return mapper.remark(entry, "batches are always full");
  mapper.remark(entry, "batches are always full: see the note");
  mapper.note(entry,
              "samples at the end of an epoch that do not fill a batch are dropped here, so an epoch can be "
              "one step shorter than in LLM Foundry");
}

/// One data set under another name is no mix.
void map_streams(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "one data set");
  const bool one = entry.node.is_map() ? entry.node.entries.size() == 1 : entry.node.items.size() == 1;
  if (!one) return mapper.problem(entry, "mixing data sets is not supported");
  const DocNode& stream = entry.node.is_map() ? entry.node.entries[0].node : entry.node.items[0];
  const std::string name = entry.node.is_map() ? entry.node.entries[0].key : "0";
  const char* const kWhole = "an epoch contains every sample once: write epoch_size";
  mapper.walk({entry.path + "." + name, stream},
              {by("local", map_local), by("remote", map_remote), to("split", "split"),
               left_out("proportion", "there is one data set"), only("repeat", {"1", "1.0", "null"}, kWhole),
               only("choose", {"null"}, kWhole), left_out("download_retry", kLoader),
               left_out("download_timeout", kLoader), left_out("validate_hash", "sizes are always checked"),
               left_out("keep_zip", kLoader)});
}

const Rows kDataset = {
    by("local", map_local),
    by("remote", map_remote),
    to("split", "split"),
    to("shuffle", "shuffle"),
    to("shuffle_seed", "shuffle_seed"),
    by("max_seq_len", map_data_length),
    noted("shuffle_algo", {"null", "naive"}, "samples of an epoch are in the order of shuffle_algo naive"),
    left_out("shuffle_block_size", "Tycho has its own order"),
    left_out("num_canonical_nodes", "the order does not depend on nodes"),
    left_out("partition_algo", "Tycho has its own order"),
    left_out("predownload", kLoader),
    left_out("cache_limit", "data is read in place"),
    left_out("keep_zip", kLoader),
    left_out("download_retry", kLoader),
    left_out("download_timeout", kLoader),
    left_out("validate_hash", "sizes are always checked"),
    left_out("batching_method", kLoader),
    left_out("allow_unsafe_types", "pickles are not read"),
    left_out("token_encoding_type", "taken from index.json"),
    by("eos_token_id", map_separator),
    by("bos_token_id", map_separator),
    by("streams", map_streams),
    to("epoch_size", "epoch_size", epoch_samples),
    only("sampling_method", {"balanced"}, "is not supported"),
    left_out("sampling_granularity", "Tycho has its own order"),
    only("replication", {"null"}, "is not supported"),
    only("mlm_probability", {"null"}, "masked language models are not supported"),
};

/// Of every loader, beside `dataset`.
const Rows kAnyLoader = {
    elsewhere("name"),
    elsewhere("label"),
    by("drop_last", map_drop_last),
    left_out("num_workers", kLoader),
    left_out("pin_memory", kLoader),
    left_out("prefetch_factor", kLoader),
    left_out("persistent_workers", kLoader),
    left_out("timeout", kLoader),
};

Rows loader_of(const Rows& dataset) {
  Rows rows = kAnyLoader;
  rows.push_back(group("dataset", dataset));
  return rows;
}

}  // namespace

bool is_remote_place(const std::string& place) { return place.find("://") != std::string::npos; }

Rows foundry_loader_rows() {
  Rows dataset = kDataset;
  const Rows& chat = foundry_chat_rows();
  dataset.insert(dataset.end(), chat.begin(), chat.end());
  return loader_of(dataset);
}

void map_foundry_loader(Mapper& mapper, const DocEntry& entry, const std::string& target) {
  const DocNode* name = entry.node.find("name");
  const std::string kind = mapper.text_of(name);
  if (kind == "text") return mapper.component(entry, target, "t.data.mds", loader_of(kDataset));
  if (kind == "finetuning")
    return mapper.component(entry, target, "t.data.chat", loader_of(foundry_chat_rows()));
  mapper.problem(name == nullptr ? entry : DocEntry{entry.path + ".name", *name},
                 "wanted the loader text (MDS shards of tokens) or finetuning (JSONL)");
}

namespace {

/// Loaders of a list have labels, which name their metrics; a single one need not.
void map_set(Mapper& mapper, const DocEntry& entry, const std::string& default_name,
             std::set<std::string>& taken) {
  const DocNode* label = entry.node.find("label");
  if (label == nullptr && default_name.empty())
    return mapper.problem(entry, "wanted a label, which names the metrics of the set");
  const std::string given = label == nullptr ? default_name : mapper.text_of(label);
  std::string name = given;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  const DocEntry at = label == nullptr ? entry : DocEntry{entry.path + ".label", *label};
  if (const std::string problem = eval_name_problem(name); !problem.empty())
    return mapper.problem(at, problem);
  if (!taken.insert(name).second) return mapper.problem(at, "another set is called " + name);
  if (name != given) mapper.note(at, fmt::format("the set is called {0}, and its loss eval.{0}.loss", name));
  const bool is_word = lua_name(name) == name;
  map_foundry_loader(mapper, entry,
                     is_word ? "eval_data." + name : fmt::format("eval_data[{}]", lua_quoted(name)));
}

}  // namespace

void map_foundry_eval_loaders(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "no evaluation");
  std::set<std::string> taken;
  if (!entry.node.is_list()) return map_set(mapper, entry, "val", taken);
  for (size_t i = 0; i < entry.node.items.size(); ++i)
    map_set(mapper, {fmt::format("{}.{}", entry.path, i), entry.node.items[i]}, "", taken);
}

}  // namespace tycho
