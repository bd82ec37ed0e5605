// The data_stages of a Nanotron YAML -> train_data and data_stages.
#include <fmt/format.h>

#include <charconv>

#include "bindings/import/systems.h"

namespace tycho {

double nanotron_number(Mapper& mapper, const char* path, double usual) {
  const DocNode* node = mapper.root().at(path);
  const DocScalar scalar = mapper.value(node);
  if (scalar.is(DocScalar::Kind::kNull)) return usual;
  double number = 0;
  const char* const end = scalar.text.data() + scalar.text.size();
  const bool is_number = scalar.is(DocScalar::Kind::kInteger) || scalar.is(DocScalar::Kind::kNumber);
  if (is_number && std::from_chars(scalar.text.data(), end, number).ec == std::errc()) return number;
  mapper.problem({path, *node}, "expected a number");
  return usual;
}

namespace {

struct DataSet {
  std::string name, folder, weight;
};

/// Returns the Nanosets of a stage: one folder, a list of folders with a list of weights, or a map of
/// weights.
std::vector<DataSet> nanosets(Mapper& mapper, const std::string& path) {
  std::vector<DataSet> sets;
  const DocNode* folders = mapper.root().at(path + ".dataset_folder");
  const DocNode* weights = mapper.root().at(path + ".dataset_weights");
  const auto add = [&](const std::string& folder, const std::string& weight) {
    const std::string trimmed = folder.substr(0, folder.find_last_not_of('/') + 1);
    sets.push_back({trimmed.substr(trimmed.find_last_of('/') + 1), folder, weight});
  };
  if (folders == nullptr) return sets;
  for (const auto& [folder, weight] : folders->entries) add(folder, mapper.text_of(&weight));
  for (size_t i = 0; i < folders->items.size(); ++i) {
    const bool weighted = weights != nullptr && i < weights->items.size();
    add(mapper.text_of(&folders->items[i]), weighted ? mapper.text_of(&weights->items[i]) : "");
  }
  if (folders->is_scalar() && !mapper.is_null(folders)) add(mapper.text_of(folders), "");
  return sets;
}

/// Returns the data sets of the hub with their weights.
std::vector<DataSet> hub_sets(Mapper& mapper, const std::string& path) {
  std::vector<DataSet> sets;
  const DocNode* given = mapper.root().at(path + ".hf_dataset_or_datasets");
  if (given == nullptr) return sets;
  for (const auto& [name, weight] : given->entries) {
    const std::string base = name.substr(name.find_last_of('/') + 1);
    sets.push_back({base, "data/" + base, mapper.text_of(&weight)});
  }
  return sets;
}

/// Returns the streams, with distinct names for folders that end in the same name.
std::string streams_of(const std::vector<DataSet>& sets) {
  std::string list;
  for (size_t i = 0; i < sets.size(); ++i) {
    std::string name = sets[i].name;
    for (size_t other = 0; other < sets.size(); ++other)
      if (other != i && sets[other].name == sets[i].name) name = fmt::format("{}-{}", sets[i].name, i + 1);
    list += fmt::format("{}{{ name = {}, local_dir = {}{} }}", list.empty() ? " " : ", ", lua_quoted(name),
                        lua_quoted(sets[i].folder),
                        sets[i].weight.empty() ? "" : ", proportion = " + sets[i].weight);
  }
  return fmt::format("streams = {{{} }}", list);
}

/// Returns true for a stage with one folder of token files, which are read in place; mixing needs MDS.
bool is_one_nanoset(Mapper& mapper, size_t stage) {
  return nanosets(mapper, fmt::format("data_stages.{}.data.dataset", stage)).size() == 1;
}

/// Returns the data of a stage as a component.
std::string stage_text(Mapper& mapper, size_t stage) {
  const std::string path = fmt::format("data_stages.{}.data", stage);
  std::vector<DataSet> sets = nanosets(mapper, path + ".dataset");
  std::string kind = "mds", fields;
  if (is_one_nanoset(mapper, stage)) {
    kind = "tokens";
    fields = "path = " + lua_quoted(sets[0].folder);
    const DocNode* bytes = mapper.root().at(path + ".dataset.token_size_in_bytes");
    if (!mapper.is_null(bytes)) fields += ", token_bytes = " + mapper.text_of(bytes);
  } else {
    if (sets.empty()) sets = hub_sets(mapper, path + ".dataset");
    const std::string nth = stage == 0 ? "" : std::to_string(stage + 1);
    fields = !sets.empty() ? streams_of(sets)
                           : fmt::format("local_dir = t.env(\"TYCHO_DATA{}\", \"data{}\")",
                                         nth.empty() ? "" : "_" + nth, nth);
  }
  const DocNode* seed = mapper.root().at(path + ".seed");
  const std::string whole = mapper.text_of(mapper.root().at("general.seed"));
  if (!mapper.is_null(seed) && mapper.text_of(seed) != whole)
    fields += ", shuffle_seed = " + mapper.text_of(seed);
  return fmt::format("t.data.{} {{ {} }}", kind, fields);
}

/// Returns the number of steps before a stage: its start counts from 1.
double steps_before(Mapper& mapper, size_t stage) {
  return nanotron_number(mapper, fmt::format("data_stages.{}.start_training_step", stage).c_str(),
                         stage == 0 ? 1 : 2) -
         1;
}

bool is_reached(Mapper& mapper, size_t stage) {
  const double steps = nanotron_number(mapper, "tokens.train_steps", 0);
  return stage == 0 || steps <= 0 || steps_before(mapper, stage) < steps;
}

void note_data(Mapper& mapper, const DocEntry& entry) {
  bool converted = false, several = false;
  for (size_t i = 0; i < entry.node.items.size(); ++i) {
    converted |= !is_one_nanoset(mapper, i);
    several |= nanosets(mapper, fmt::format("{}.{}.data.dataset", entry.path, i)).size() > 1;
  }
  if (several)
    return mapper.note(entry,
                       "one Nanoset is read as it is; several are mixed as MDS: create them from their texts "
                       "with tycho data convert");
  if (converted)
    mapper.note(entry, "Nanotron's data has another format: create shards with tycho data convert");
}

}  // namespace

void map_nanotron_stages(Mapper& mapper, const DocEntry& entry) {
  if (!entry.node.is_list() || entry.node.items.empty())
    return mapper.problem(entry, "expected a list of stages");
  double before = -1;
  for (size_t i = 0; i < entry.node.items.size(); ++i) {
    const DocNode& stage = entry.node.items[i];
    const DocNode *start = stage.find("start_training_step"), *length = stage.find("sequence_length");
    const std::string path = fmt::format("{}.{}", entry.path, i);
    const double step = steps_before(mapper, i);
    const DocEntry at = {path + ".start_training_step", start == nullptr ? stage : *start};
    if (i == 0 && step != 0) mapper.problem(at, "the first stage must begin at step 1");
    if (step <= before) mapper.problem(at, "stages must begin one after the other");
    before = step;
    if (!is_reached(mapper, i)) mapper.note(at, "is after the last step: the stage is left out");
    if (!mapper.is_null(length) &&
        mapper.text_of(length) != mapper.text_of(mapper.root().at("tokens.sequence_length")))
      mapper.problem({path + ".sequence_length", *length}, "all stages have the same length here");
  }
  note_data(mapper, entry);
  mapper.remark(entry, entry.node.items.size() == 1 ? "see train_data at the end"
                                                    : "see train_data and data_stages at the end");
}

void write_nanotron_stages(Mapper& mapper) {
  const DocNode* stages = mapper.root().find("data_stages");
  const bool is_read = is_one_nanoset(mapper, 0);
  mapper.out().write(fmt::format("r.train_data = {}  -- {}", stage_text(mapper, 0),
                                 is_read ? "its .ds files, read as they are" : "made by: tycho data convert"),
                     0);
  std::vector<std::string> later;
  for (size_t i = 1; stages != nullptr && i < stages->items.size(); ++i) {
    if (!is_reached(mapper, i)) continue;
    const DocNode* name = stages->items[i].find("name");
    later.push_back(fmt::format(
        "  {{ name = {}, start = \"{}ba\", data = {} }},",
        lua_quoted(mapper.is_null(name) ? "stage " + std::to_string(i + 1) : mapper.text_of(name)),
        steps_before(mapper, i), stage_text(mapper, i)));
  }
  if (later.empty()) return;
  mapper.out().write("r.data_stages = {", 0);
  for (const std::string& line : later) mapper.out().write(line, 0);
  mapper.out().write("}", 0);
}

}  // namespace tycho
