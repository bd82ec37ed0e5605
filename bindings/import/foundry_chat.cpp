// LLM Foundry's finetuning loader -> t.data.chat.
#include <algorithm>
#include <array>
#include <string>

#include "bindings/import/lua_writer.h"
#include "bindings/import/systems.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {
namespace {

const char* const kItsLoader = "Tycho has its own loader";

/// Returns the path of a key of the dataset that an entry is part of.
std::string dataset_key(const DocEntry& entry, const std::string& key) {
  return entry.path.substr(0, entry.path.find(".dataset.") + sizeof(".dataset")) + key;
}

const DocNode* sibling(Mapper& mapper, const DocEntry& entry, const std::string& key) {
  return mapper.root().at(dataset_key(entry, key));
}

/// Maps the split of a folder's files, by their names as `datasets` finds them.
void map_split_of_folder(Mapper& mapper, const DocEntry& entry, const std::string& path) {
  const DocNode* split = sibling(mapper, entry, "split");
  mapper.emit(entry, "path", path);
  if (mapper.is_null(split)) return mapper.emit(entry, "split", "\"train\"");
  const std::string name = mapper.text_of(split);
  if (name.find_first_of("[+") != std::string::npos)
    return mapper.problem(entry, "expected the name of a split, got \"" + name +
                                     "\": parts and sums of splits are not read; write the rows to a file");
  mapper.emit(entry, "split", mapper.expression({dataset_key(entry, "split"), *split}));
}

/// Returns "@REVISION/CONFIGURATION" of hf_kwargs, which ends the name of a data set; "" where both are
/// absent.
std::string end_of_hub_name(Mapper& mapper, const DocEntry& entry, const std::string& id) {
  const DocNode* revision = sibling(mapper, entry, "hf_kwargs.revision");
  const DocNode* configuration = sibling(mapper, entry, "hf_kwargs.name");
  HubName name = {.id = id};
  const size_t begin = name.text().size();
  if (!mapper.is_null(revision)) name.revision = mapper.text_of(revision);
  if (!mapper.is_null(configuration)) name.path = mapper.text_of(configuration);
  return name.text().substr(begin);
}

/// Returns false after reporting why a data set of the hub cannot be read as LLM Foundry reads it.
bool check_hub_data(Mapper& mapper, const DocEntry& entry, const std::string& name, const std::string& end) {
  // Data sets whose rows LLM Foundry 0.22 rewrites by itself.
  constexpr std::array kRewritten = {"tatsu-lab/alpaca", "HuggingFaceH4/databricks_dolly_15k",
                                     "bigscience/P3",    "Muennighoff/P3",
                                     "Muennighoff/flan", "teknium/OpenHermes-2.5"};
  std::string problem = hub_name_problem("hf://datasets/" + name + end);
  if (std::count(name.begin(), name.end(), '/') > 1)
    problem = "is neither a folder here nor OWNER/NAME of the hub: write ./ before the path of a folder";
  if (std::find(kRewritten.begin(), kRewritten.end(), name) != kRewritten.end())
    problem =
        "LLM Foundry rewrites the rows of this data set with a function of Python: make its rows with tycho "
        "data map, and write hf_name: ./FOLDER for a folder with train.jsonl";
  for (const char* key : {"hf_kwargs.data_files", "hf_kwargs.data_dir"})
    if (sibling(mapper, entry, key) != nullptr)
      problem = "with data_files, write hf_name: json and data_files: hf://datasets/OWNER/NAME/PATH";
  if (!problem.empty()) mapper.problem(entry, problem);
  return problem.empty();
}

/// Maps hf_name: a folder with files for each split, or a data set of the hub. With "json" the file is in
/// hf_kwargs.
void map_hf_name(Mapper& mapper, const DocEntry& entry) {
  const std::string name = mapper.text_of(&entry.node);
  if (name == "json") {
    if (sibling(mapper, entry, "hf_kwargs.data_files") == nullptr &&
        sibling(mapper, entry, "hf_kwargs.data_dir") == nullptr)
      return mapper.problem(entry,
                            "needs hf_kwargs.data_files, one .jsonl or a folder of them, or "
                            "hf_kwargs.data_dir, a folder with files of the split");
    return mapper.remark(entry, "rows are JSONL");
  }
  if (mapper.is_null(sibling(mapper, entry, "split")))
    return mapper.problem(entry, "needs split, which says what files of it to read");
  if (is_local_folder(name) || is_hub_name(name))
    return map_split_of_folder(mapper, entry, mapper.expression(entry));
  const std::string end = end_of_hub_name(mapper, entry, name);
  if (!check_hub_data(mapper, entry, name, end)) return;
  std::string path = mapper.expression_after("hf://datasets/", entry);
  if (!end.empty())
    path = mapper.is_interpolated(entry.node) ? path + " .. " + lua_quoted(end)
                                              : lua_quoted("hf://datasets/" + name + end);
  map_split_of_folder(mapper, entry, path);
}

/// Maps a folder with a file for each split.
void map_data_dir(Mapper& mapper, const DocEntry& entry) {
  if (sibling(mapper, entry, "hf_kwargs.data_files") != nullptr)
    return mapper.problem(entry, "is more than data_files: write the path of the file there alone");
  map_split_of_folder(mapper, entry, mapper.expression(entry));
}

/// Maps the configuration and the revision of a data set of the hub, which are in its name here.
void map_part_of_hub_name(Mapper& mapper, const DocEntry& entry) {
  const DocNode* whole = sibling(mapper, entry, "hf_name");
  const std::string name = mapper.is_null(whole) ? "json" : mapper.text_of(whole);
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "not set");
  if (name != "json" && !is_local_folder(name) && !is_hub_name(name))
    return mapper.remark(entry, "in the data set's name: see path");
  mapper.problem(entry, "is for hf_name: OWNER/NAME, a data set of the hub, got hf_name: " + name +
                            ": write the folder or the file of that configuration");
}

/// Maps a file, a list of one file, or these for each split.
void map_data_files(Mapper& mapper, const DocEntry& entry) {
  const DocNode* files = &entry.node;
  std::string path = entry.path;
  if (files->is_map()) {
    const DocNode* split = sibling(mapper, entry, "split");
    const std::string name = mapper.is_null(split) ? "train" : mapper.text_of(split);
    files = files->find(name);
    if (files == nullptr) return mapper.problem(entry, "has no files of the split " + name);
    path += "." + name;
  }
  if (files->is_list() && files->items.size() == 1) files = &files->items[0];
  if (!files->is_scalar() || mapper.is_null(files))
    return mapper.problem(entry, "must be a .jsonl file or a folder of them");
  mapper.emit(entry, "path", mapper.expression({path, *files}));
}

/// Maps the split's folder of an MDS data set.
void map_mds_folder(Mapper& mapper, const DocEntry& entry, const char* key) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "not set");
  const DocNode* split = sibling(mapper, entry, "split");
  const std::string suffix = mapper.is_null(split) ? "" : "/" + mapper.text_of(split);
  mapper.emit(entry, key, mapper.expression_with(entry, suffix));
}

/// Maps a single data set that is written as a list of streams.
void map_chat_streams(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "there are none");
  const bool is_list = entry.node.is_list();
  if ((is_list ? entry.node.items.size() : entry.node.entries.size()) != 1)
    return mapper.problem(entry,
                          "mixing data sets of conversations is not supported: join them in one folder");
  const std::string name = is_list ? "0" : entry.node.entries.front().key;
  const DocNode& stream = is_list ? entry.node.items[0] : entry.node.entries.front().node;
  const DocNode* split = stream.find("split");
  if (split == nullptr) split = sibling(mapper, entry, "split");
  const std::string suffix = mapper.is_null(split) ? "" : "/" + mapper.text_of(split);
  const auto place = [&](const char* target) {
    return [=](Mapper& in, const DocEntry& at) {
      if (!in.is_null(&at.node)) in.emit(at, target, in.expression_with(at, suffix));
    };
  };
  constexpr const char* kAlone = "there is one stream alone";
  mapper.walk(
      {entry.path + "." + name, stream},
      {by("local", place("path")), by("remote", place("remote")), left_out("split", "taken from path"),
       left_out("proportion", kAlone), only("repeat", {"null", "1", "1.0"}, "use max_duration"),
       only("choose", {"null"}, "use max_duration")});
}

void map_chat_length(Mapper& mapper, const DocEntry& entry) {
  const DocNode* whole = mapper.root().find("max_seq_len");
  if (whole == nullptr || mapper.text_of(whole) == mapper.text_of(&entry.node))
    return mapper.remark(entry, "taken from r.seq_len");
  mapper.problem(entry, "differs from max_seq_len = " + mapper.text_of(whole) +
                            ": rows must be as long as the model's sequences");
}

/// Returns true for a packing_ratio with which LLM Foundry packs nothing.
bool packs_nothing(Mapper& mapper, const DocNode* ratio) {
  if (mapper.is_null(ratio)) return true;
  const std::string text = mapper.text_of(ratio);
  return text == "1" || text == "1.0";
}

/// Maps packing_ratio. Batches are packed one by one, in groups like those of its ranks; an evaluation sees
/// every example once.
void map_packing_ratio(Mapper& mapper, const DocEntry& entry) {
  if (packs_nothing(mapper, &entry.node)) return mapper.remark(entry, "every example has a row of its own");
  const std::string ratio = mapper.text_of(&entry.node);
  mapper.emit(entry, "pack", "true");
  if (entry.path.starts_with("eval_loader")) {
    mapper.note(entry, "all examples are packed once, so none is left out of an evaluation");
  } else {
    mapper.emit(entry, "packing_ratio",
                ratio == "auto" ? "\"auto\"" : mapper.expression({entry.path, entry.node}));
    mapper.note(entry, "its rows on N GPUs need packing_groups = N");
  }
  const DocNode* isolated = foundry_sequence_ids(mapper);
  if (isolated == nullptr || mapper.text_of(isolated) != "true")
    mapper.note(entry,
                "here attention stays within the examples of a row; in LLM Foundry, examples also see "
                "earlier ones unless attn_uses_sequence_id is set");
}

/// Maps the key for leftover rows, which exist only where batches are packed one by one.
void map_leftover_rows(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node)) return mapper.remark(entry, "all rows go on into the next batch");
  const DocNode* ratio = sibling(mapper, entry, "packing_ratio");
  if (mapper.is_null(ratio)) return mapper.problem(entry, "needs packing_ratio, as in LLM Foundry");
  if (entry.path.starts_with("eval_loader") || packs_nothing(mapper, ratio))
    return mapper.remark(entry, "no row is left over");
  mapper.emit(entry, "max_leftover_rows", mapper.expression({entry.path, entry.node}));
}

/// Maps trimming, which has no effect on packed rows, since they are full.
void map_trimming(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) != "true" ||
      !packs_nothing(mapper, sibling(mapper, entry, "packing_ratio")))
    return mapper.remark(entry, "padding does not change any number");
  mapper.emit(entry, "trim_padding", "true");
}

/// Maps target_prompts; "length>=N" is a number here.
void map_target_prompts(Mapper& mapper, const DocEntry& entry) {
  constexpr std::string_view kLength = "length>=";
  const std::string given = mapper.text_of(&entry.node);
  if (!given.starts_with(kLength))
    return to("", "target_prompts", words({{"none", "none"}, {"all", "all"}})).act(mapper, entry);
  const std::string number = given.substr(kLength.size());
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos)
    return mapper.problem(entry, "expected none, all or length>=N with a whole number");
  mapper.emit(entry, "target_prompts", "\"all\"");
  mapper.emit(entry, "min_target_prompt", number);
}

const Rows kChatDataset = {
    by("hf_name", map_hf_name),
    group("hf_kwargs", {by("data_files", map_data_files), by("data_dir", map_data_dir),
                        by("name", map_part_of_hub_name), by("revision", map_part_of_hub_name)}),
    left_out("split", "see path"),
    by("max_seq_len", map_chat_length),
    by("packing_ratio", map_packing_ratio),
    to("target_responses", "target_responses", words({{"last", "last"}, {"all", "all"}})),
    by("target_prompts", map_target_prompts),
    to("shuffle", "shuffle"),
    to("shuffle_seed", "shuffle_seed"),
    only("decoder_only_format", {"true"}, "models are decoders"),
    only("preprocessing_fn", {"null"}, "no Python runs: make the rows with tycho data map"),
    by("local", [](Mapper& mapper, const DocEntry& entry) { map_mds_folder(mapper, entry, "path"); }),
    by("remote", [](Mapper& mapper, const DocEntry& entry) { map_mds_folder(mapper, entry, "remote"); }),
    by("streams", map_chat_streams),
    left_out("eos_token_id", "not read there: examples end with the tokenizer's eos token"),
    left_out("safe_load", "no code in data is run"),
    by("allow_pad_trimming", map_trimming),
    left_out("pad_to_longest", "padding does not change any number"),
    by("max_leftover_bins_to_keep", map_leftover_rows),
    left_out("auto_packing_replication", kItsLoader),
    left_out("seq_parallel_replication", kItsLoader),
    left_out("allow_unsafe_types", "pickles are not read"),
    foundry_token_encoding(),
};

/// Returns the side of padding. LLM Foundry pads on the tokenizer's side: the right side, unless
/// tokenizer.kwargs says otherwise.
std::vector<std::string> padding_of_tokenizer(Mapper& mapper) {
  const DocNode* side = mapper.root().at("tokenizer.kwargs.padding_side");
  if (mapper.is_null(side) || mapper.text_of(side) == "right") return {};
  if (mapper.text_of(side) == "left") return {"padding_side = \"left\""};
  mapper.problem({"tokenizer.kwargs.padding_side", *side}, "expected left or right");
  return {};
}

/// Adds the order of rows. compat = "composer" has the orders of mosaicml-streaming for MDS and of PyTorch's
/// sampler for other rows; their seeds are these, unless the file has another one.
void add_order(Mapper& mapper, const DocEntry& loader, std::vector<std::string>& fields) {
  const auto given = [&](const char* key) { return mapper.root().at(loader.path + ".dataset." + key); };
  const bool is_mds = mapper.is_null(given("hf_name"));
  if (mapper.is_null(given("shuffle"))) fields.emplace_back("shuffle = false");
  if (mapper.is_null(given("shuffle_seed")))
    fields.emplace_back(is_mds ? "shuffle_seed = 9176" : "shuffle_seed = 0");
}

/// Returns the template: LLM Foundry uses the tokenizer's own, and ChatML without one.
std::vector<std::string> template_of_tokenizer(Mapper& mapper, const DocEntry& loader) {
  const Json config = foundry_tokenizer_config(mapper);
  if (config.is_object() && !config.value("chat_template", Json()).is_null())
    return {"template = \"tokenizer\""};
  const bool is_training = loader.path == "train_loader";
  if (config.is_null() && is_training)
    mapper.note(
        loader,
        "conversations are written as ChatML; LLM Foundry takes the tokenizer's chat_template where it "
        "has one: set r.tokenizer, and template = \"tokenizer\" of train_data");
  return {};
}

}  // namespace

std::vector<std::string> foundry_chat_fields(Mapper& mapper, const DocEntry& loader) {
  std::vector<std::string> fields = padding_of_tokenizer(mapper);
  if (loader.path == "train_loader") add_order(mapper, loader, fields);
  for (std::string& field : template_of_tokenizer(mapper, loader)) fields.push_back(std::move(field));
  return fields;
}

const Rows& foundry_chat_rows() { return kChatDataset; }

}  // namespace tycho
