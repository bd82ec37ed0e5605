// LLM Foundry's data loaders -> t.data.*.
#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <set>

#include "bindings/import/systems.h"
#include "trainer/recipe/remote_uri.h"

namespace tycho {
namespace {

const char* const kChecked = "sizes are always checked";
const char* const kLoader = "Tycho has its own loader";

/// Maps `remote`. Data in a folder is read in place; a URL in `remote` has its cache in `local`, as in LLM
/// Foundry.
void map_remote(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the data is in local");
  if (!is_remote_place(mapper.text_of(&entry.node)))
    return mapper.emit(entry, "local_dir", mapper.expression(entry));
  if (const std::string problem = remote_problem(mapper.text_of(&entry.node)); !problem.empty())
    return mapper.problem(entry, problem);
  const std::string beside = entry.path.substr(0, entry.path.rfind('.'));
  if (mapper.is_null(mapper.root().at(beside + ".local")))
    return mapper.problem(entry, "expected local too: the folder of this machine that keeps what is fetched");
  mapper.emit(entry, "remote", mapper.expression(entry));
}

void map_local(Mapper& mapper, const DocEntry& entry) {
  const std::string beside = entry.path.substr(0, entry.path.rfind('.'));
  const DocNode* remote = mapper.root().at(beside + ".remote");
  if (!mapper.is_null(remote) && !is_remote_place(mapper.text_of(remote)))
    return mapper.remark(entry, "read where it is, without a copy");
  if (mapper.is_null(&entry.node)) return mapper.problem(entry, "expected the folder of the data");
  mapper.emit(entry, "local_dir", mapper.expression(entry));
}

void map_data_length(Mapper& mapper, const DocEntry& entry) {
  const DocNode* whole = mapper.root().find("max_seq_len");
  if (whole == nullptr || mapper.text_of(whole) == mapper.text_of(&entry.node))
    return mapper.remark(entry, "taken from r.seq_len");
  mapper.problem(entry, "differs from max_seq_len = " + mapper.text_of(whole) +
                            ": rows of a data set must be as long as the model's sequences");
}

/// Maps the token that ends documents. LLM Foundry makes sequence ids whenever the token is named, and uses
/// them only when the model says so.
void map_separator(Mapper& mapper, const DocEntry& entry) {
  const DocNode* used = foundry_sequence_ids(mapper);
  if (mapper.is_null(&entry.node) || used == nullptr || mapper.text_of(used) != "true")
    return mapper.remark(entry, "attention spans the whole row: attn_uses_sequence_id is not set");
  const std::string key = entry.path.substr(entry.path.rfind('.') + 1);
  mapper.emit(entry, key, mapper.expression(entry));
}

/// Returns a number of samples, also for Composer's "100k".
std::optional<std::string> epoch_samples(Mapper& mapper, const DocEntry& entry) {
  const DocScalar scalar = mapper.value(&entry.node);
  if (scalar.is(DocScalar::Kind::kInteger)) return mapper.expression(entry);
  static const std::map<char, double> kUnits = {{'k', 1e3}, {'m', 1e6}, {'b', 1e9}, {'t', 1e12}};
  const auto unit =
      kUnits.find(scalar.text.empty() ? ' ' : static_cast<char>(std::tolower(scalar.text.back())));
  char* end = nullptr;
  const double count = std::strtod(scalar.text.c_str(), &end);
  if (!entry.node.is_scalar() || unit == kUnits.end() || end != &scalar.text.back()) {
    mapper.problem(entry, "expected a number of samples such as 100000 or 100k");
    return std::nullopt;
  }
  return fmt::format("{:.0f}", count * unit->second);
}

/// Maps drop_last. In LLM Foundry a batch that the last samples do not fill is a step; in evaluations Tycho
/// too takes every sample.
void map_drop_last(Mapper& mapper, const DocEntry& entry) {
  if (!entry.path.starts_with("train_loader")) return mapper.remark(entry, "evaluations take every sample");
  if (mapper.text_of(&entry.node) != "false") return mapper.remark(entry, "batches are always full");
  mapper.remark(entry, "batches are always full: see the note");
  mapper.note(entry,
              "samples at the end of an epoch that do not fill a batch are dropped here, so an epoch can be "
              "one step shorter than in LLM Foundry");
}

const char* const kEverySample = "evaluations take every sample once";

bool is_training(const DocEntry& entry) { return entry.path.starts_with("train_loader"); }

/// Maps a key of the sample order that means the same in both. `unused` returns why it has no effect; "" when
/// it has one.
Row order_key(const char* key, std::string (*unused)(Mapper&)) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (!is_training(entry)) return mapper.remark(entry, kEverySample);
    if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
    const std::string why = unused(mapper);
    if (!why.empty()) return mapper.remark(entry, why);
    mapper.emit(entry, key, mapper.expression(entry));
  });
}

std::string train_value(Mapper& mapper, const char* key, const char* usual) {
  const DocNode* node = mapper.root().at(std::string("train_loader.dataset.") + key);
  return mapper.is_null(node) ? usual : mapper.text_of(node);
}

bool shuffles(Mapper& mapper) { return train_value(mapper, "shuffle", "false") == "true"; }

std::string no_reason(Mapper&) { return ""; }
std::string unless_shuffled(Mapper& mapper) { return shuffles(mapper) ? "" : "samples are not shuffled"; }
std::string unless_in_blocks(Mapper& mapper) {
  const std::string algo = train_value(mapper, "shuffle_algo", "py1e");
  if (!shuffles(mapper)) return "samples are not shuffled";
  return algo == "py1e" || algo == "py1br" ? "" : algo + " has no blocks";
}

/// Returns true when the data set of a key, or one of its streams, is at a URL.
bool is_fetched(Mapper& mapper, const DocEntry& entry) {
  const DocNode* dataset = mapper.root().at(entry.path.substr(0, entry.path.find(".dataset.") + 8));
  const auto has_url = [&](const DocNode* node) {
    const DocNode* remote = node == nullptr ? nullptr : node->find("remote");
    return !mapper.is_null(remote) && is_remote_place(mapper.text_of(remote));
  };
  const DocNode* streams = dataset == nullptr ? nullptr : dataset->find("streams");
  bool found = has_url(dataset);
  if (streams != nullptr) {
    for (const auto& [name, stream] : streams->entries) found = found || has_url(&stream);
    for (const DocNode& stream : streams->items) found = found || has_url(&stream);
  }
  return found;
}

/// Maps a key that matters only for data that is fetched.
Row fetch_key(const char* key, const char* target, Convert convert = nullptr) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
    if (!is_fetched(mapper, entry)) return mapper.remark(entry, "data is read in place");
    const std::optional<std::string> value = convert ? convert(mapper, entry) : mapper.expression(entry);
    if (value) mapper.emit(entry, target, *value);
  });
}

/// Returns a size in bytes: "10gb" means 10 GiB in LLM Foundry.
std::optional<std::string> cache_bytes(Mapper& mapper, const DocEntry& entry) {
  static const std::map<std::string, const char*> kUnits = {{"", "B"},     {"b", "B"},    {"kb", "KiB"},
                                                            {"mb", "MiB"}, {"gb", "GiB"}, {"tb", "TiB"}};
  const std::string text = mapper.text_of(&entry.node);
  const size_t digits = text.find_first_not_of("0123456789._");
  std::string number = text.substr(0, digits), unit = digits == std::string::npos ? "" : text.substr(digits);
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::erase(number, '_');
  if (!entry.node.is_scalar() || number.empty() || !kUnits.contains(unit)) {
    mapper.problem(entry, "expected a size such as 100gb or a number of bytes");
    return std::nullopt;
  }
  return lua_quoted(number + kUnits.at(unit));
}

size_t num_streams(const DocNode& streams) {
  return streams.is_map() ? streams.entries.size() : streams.items.size();
}

std::string unless_mixed(Mapper& mapper) {
  const DocNode* streams = mapper.root().at("train_loader.dataset.streams");
  return streams != nullptr && num_streams(*streams) > 1 ? "" : "there is one data set";
}

void map_shuffle_algo(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "py1b" && is_training(entry))
    return mapper.problem(entry, "mosaicml-streaming has no py1b any more: write py1br");
  order_key("shuffle_algo", unless_shuffled).act(mapper, entry);
}

/// Returns one of several streams as a line of the recipe; "" after a problem.
std::string stream_line(Mapper& mapper, const DocEntry& streams, const std::string& name,
                        const DocNode& stream) {
  const std::string path = streams.path + "." + name;
  std::string fields = fmt::format("name = {}", lua_quoted(name));
  const auto add = [&](const char* key, const char* target) {
    const DocNode* node = stream.find(key);
    if (mapper.is_null(node)) return false;
    fields += fmt::format(", {} = {}", lua_key(target), mapper.expression({path + "." + key, *node}));
    return true;
  };
  const DocNode* remote = stream.find("remote");
  const bool is_url = !mapper.is_null(remote) && is_remote_place(mapper.text_of(remote));
  if (is_url) {
    if (const std::string problem = remote_problem(mapper.text_of(remote)); !problem.empty()) {
      mapper.problem({path + ".remote", *remote}, problem);
      return "";
    }
    add("remote", "remote");
  }
  if (!(!is_url && add("remote", "local_dir")) && !add("local", "local_dir")) {
    mapper.problem({path, stream}, "expected the folder of the data");
    return "";
  }
  const DocNode* whole = mapper.root().at(streams.path.substr(0, streams.path.rfind('.')) + ".split");
  if (!add("split", "split"))
    fields += ", split = " + (mapper.is_null(whole) ? "\"\"" : mapper.expression({path + ".split", *whole}));
  for (const char* weight : {"proportion", "repeat", "choose"})
    if (is_training(streams)) add(weight, weight);
  return fmt::format("{{ {} }}", fields);
}

/// Returns true for a stream that is a data set of which an epoch has every sample once, or as many as
/// epoch_size says.
bool is_whole(Mapper& mapper, const DocNode& stream) {
  const DocNode* repeat = stream.find("repeat");
  const std::string times = mapper.is_null(repeat) ? "1" : mapper.text_of(repeat);
  return mapper.is_null(stream.find("choose")) && (times == "1" || times == "1.0");
}

const std::set<std::string> kStreamKeys = {
    "local",          "remote",           "split",    "proportion",   "repeat", "choose", "name",
    "download_retry", "download_timeout", "keep_zip", "validate_hash"};

void map_streams(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "one data set");
  std::vector<std::pair<std::string, const DocNode*>> streams;
  for (const auto& [name, stream] : entry.node.entries) streams.emplace_back(name, &stream);
  for (size_t i = 0; i < entry.node.items.size(); ++i)
    streams.emplace_back(std::to_string(i), &entry.node.items[i]);
  if (streams.size() == 1 && is_whole(mapper, *streams[0].second)) {
    const char* const kWhole = "an epoch contains every sample once";
    return mapper.walk({entry.path + "." + streams[0].first, *streams[0].second},
                       {by("local", map_local), by("remote", map_remote), to("split", "split"),
                        left_out("proportion", "there is one data set"), left_out("repeat", kWhole),
                        left_out("choose", kWhole), fetch_key("download_retry", "download_retry"),
                        fetch_key("download_timeout", "download_timeout_s"),
                        left_out("validate_hash", kChecked), fetch_key("keep_zip", "keep_zip")});
  }
  std::string list;
  for (const auto& [name, stream] : streams) {
    for (const auto& [key, node] : stream->entries)
      if (!kStreamKeys.contains(key))
        mapper.problem({entry.path + "." + name + "." + key, node}, "unknown key");
    list += (list.empty() ? " " : ", ") + stream_line(mapper, entry, name, *stream);
  }
  mapper.emit(entry, "streams", fmt::format("{{{} }}", list));
}

/// Returns the fields for LLM Foundry's defaults of a training loader.
std::vector<std::string> order_defaults(Mapper& mapper, const DocEntry& loader) {
  std::vector<std::string> fields;
  const auto absent = [&](const char* key) {
    return mapper.root().at(loader.path + ".dataset." + key) == nullptr;
  };
  if (absent("shuffle")) fields.emplace_back("shuffle = false");
  if (shuffles(mapper) && train_value(mapper, "shuffle_algo", "") == "")
    fields.emplace_back("shuffle_algo = \"py1e\"");
  if (absent("shuffle_seed")) fields.emplace_back("shuffle_seed = 9176");
  fields.emplace_back("compat = \"streaming\"");
  return fields;
}

/// Returns the tokens that end documents in training, for an evaluation set without its own, so that losses
/// can be compared.
std::vector<std::string> separators_of_training(Mapper& mapper, const DocEntry& loader) {
  std::vector<std::string> fields;
  const DocNode* used = foundry_sequence_ids(mapper);
  for (const std::string key : {"eos_token_id", "bos_token_id"}) {
    const DocNode* trained = mapper.root().at("train_loader.dataset." + key);
    if (used == nullptr || mapper.text_of(used) != "true" || mapper.is_null(trained)) continue;
    if (!mapper.is_null(mapper.root().at(loader.path + ".dataset." + key))) continue;
    fields.push_back(key + " = " + mapper.expression({"train_loader.dataset." + key, *trained}));
    mapper.note(loader,
                "attention stays within documents, as in training, so that the losses can be compared; "
                "in LLM Foundry it spans the whole row without " +
                    key);
  }
  return fields;
}

const Rows kDataset = {
    by("local", map_local),
    by("remote", map_remote),
    to("split", "split"),
    to("shuffle", "shuffle"),
    to("shuffle_seed", "shuffle_seed"),
    by("max_seq_len", map_data_length),
    by("shuffle_algo", map_shuffle_algo),
    order_key("shuffle_block_size", unless_in_blocks),
    order_key("num_canonical_nodes", no_reason),
    only("partition_algo", {"null", "relaxed", "orig"}, "is not supported"),
    fetch_key("predownload", "predownload"),
    fetch_key("cache_limit", "cache_limit", cache_bytes),
    fetch_key("keep_zip", "keep_zip"),
    fetch_key("download_retry", "download_retry"),
    fetch_key("download_timeout", "download_timeout_s"),
    left_out("validate_hash", kChecked),
    order_key("batching_method", unless_mixed),
    left_out("allow_unsafe_types", "pickles are not read"),
    foundry_token_encoding(),
    by("eos_token_id", map_separator),
    by("bos_token_id", map_separator),
    by("streams", map_streams),
    to("epoch_size", "epoch_size", epoch_samples),
    order_key("sampling_method", no_reason),
    order_key("sampling_granularity", no_reason),
    only("replication", {"null", "1"},
         "is not needed: ranks that share a sequence (parallel.tp, parallel.cp, parallel.pp) get the same "
         "samples. Set one of these, and leave it out"),
    only("mlm_probability", {"null"}, "masked language models are not supported"),
};

/// Keys of every loader, outside of `dataset`.
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

/// Returns the fields of a text loader. LLM Foundry truncates samples that are longer than max_seq_len.
std::vector<std::string> fields_of_text(Mapper& mapper, const DocEntry& entry, const std::string& target) {
  std::vector<std::string> fields =
      target == "train_data" ? order_defaults(mapper, entry) : separators_of_training(mapper, entry);
  fields.emplace_back("truncate = true");
  if (target == "train_data")
    mapper.note(entry,
                "samples longer than max_seq_len are cut, as in LLM Foundry (truncate = true); recut = true "
                "trains on all of their tokens");
  return fields;
}

/// Adds Composer's count of a batch's tokens, without padding.
void add_token_count(Mapper& mapper, const DocEntry& entry, std::vector<std::string>& fields) {
  fields.emplace_back("compat = \"composer\"");
  if (mapper.text_of(mapper.root().find("max_duration")).ends_with("tok"))
    mapper.note(entry,
                "tokens of max_duration are counted without padding, as in LLM Foundry (compat = "
                "\"composer\")");
}

}  // namespace

Row foundry_token_encoding() {
  return by("token_encoding_type", [](Mapper& mapper, const DocEntry& entry) {
    const std::string beside = entry.path.substr(0, entry.path.rfind('.'));
    if (!mapper.is_null(mapper.root().at(beside + ".hf_name"))) return mapper.remark(entry, "rows are texts");
    const std::string given = mapper.text_of(&entry.node);
    if (given == "int64" || mapper.is_null(&entry.node))
      return mapper.remark(entry, "bytes are read as int64");
    mapper.problem(entry, "expected int64, got " + given +
                              ": a column of \"bytes\" is read as int64. Write the data with columns of "
                              "ndarray:int32, which need no token_encoding_type, and leave the key out");
  });
}

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
  if (kind == "text")
    return mapper.component(entry, target, "t.data.mds", loader_of(kDataset),
                            fields_of_text(mapper, entry, target));
  if (kind == "finetuning") {
    std::vector<std::string> fields = foundry_chat_fields(mapper, entry);
    if (target == "train_data") add_token_count(mapper, entry, fields);
    return mapper.component(entry, target, "t.data.chat", loader_of(foundry_chat_rows()), fields);
  }
  mapper.problem(name == nullptr ? entry : DocEntry{entry.path + ".name", *name},
                 "expected the loader text (MDS shards of tokens) or finetuning (JSONL)");
}

}  // namespace tycho
