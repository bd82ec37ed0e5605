// Determines which system a file belongs to and passes its keys to that system's table.
#include "bindings/import/import.h"

#include <algorithm>
#include <filesystem>

#include "bindings/define/source_file.h"
#include "bindings/import/systems.h"
#include "bindings/import/wandb_sweep.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

struct System {
  const char* name;
  const Rows& (*rows)();
  void (*map)(Mapper&);
  std::string (*explain_unknown)(const std::string& path) = nullptr;
};

constexpr System kFoundry = {"an LLM Foundry YAML", foundry_rows, map_foundry};
constexpr System kTitan = {"a TorchTitan TOML", titan_rows, map_titan, titan_key_elsewhere};
constexpr System kTitanJson = {"a TorchTitan config saved as JSON", titan_rows, map_titan,
                               titan_key_elsewhere};
constexpr System kNanotron = {"a Nanotron YAML", nanotron_rows, map_nanotron};

bool is_toml(const std::string& file) { return file.ends_with(".toml"); }
bool is_json(const std::string& file) { return file.ends_with(".json"); }

const System& system_of(const DocNode& root, const std::string& file) {
  if (is_toml(file)) return kTitan;
  if (is_json(file)) return kTitanJson;
  if (root.find("parallelism") != nullptr || root.find("tokens") != nullptr) return kNanotron;
  if (root.find("train_loader") != nullptr || root.find("max_duration") != nullptr ||
      root.find("global_train_batch_size") != nullptr)
    return kFoundry;
  fail(ExitCode::kRecipe,
       "[import] {}: expected an LLM Foundry training YAML (train_loader, max_duration, ...) or a Nanotron "
       "config (tokens, parallelism, ...)",
       file);
}

/// Returns true for a file of mcli, which starts runs on MosaicML's machines; `parameters` holds the YAML of
/// the run.
bool is_of_mcli(const DocNode& root) {
  const auto has = [&](const char* key) { return root.find(key) != nullptr; };
  return (has("command") || has("parameters")) && (has("image") || has("compute"));
}

/// Returns the text with all lines outside [first, last] blanked.
std::string only_lines(const std::string& text, int first, int last) {
  std::string out = text;
  int line = 1;
  for (char& c : out) {
    const bool is_outside = line < first || line > last;
    if (c == '\n')
      ++line;
    else if (is_outside)
      c = ' ';
  }
  return out;
}

/// Reduces a file of mcli to the contents of `parameters`.
void take_parameters(DocNode& root, std::string& text, const std::string& file,
                     std::vector<std::string>& notes) {
  const DocNode* parameters = root.find("parameters");
  if (parameters == nullptr || !parameters->is_map() || parameters->entries.empty())
    fail(ExitCode::kRecipe,
         "[import] {}: expected the keys of a run below parameters:, got none. This file is for mcli: import "
         "the YAML that its command names, with the key=value arguments that stand there",
         file);
  notes.push_back(fmt::format(
      "line {}  parameters: what is below it is imported; the other keys are for mcli", parameters->line));
  DocNode taken = *parameters;
  text = only_lines(text, taken.line, taken.last_line);
  root = std::move(taken);
}

/// A key=value whose key is the other system's.
struct DocPin {
  std::vector<std::string> keys;
  std::string value;
};

/// Returns true for a value that cannot stand where the file has a map of keys: tokenizer=tokenizer.json and
/// optimizer=lion{} are Tycho's.
bool names_one_value(const std::string& value) {
  const DocNode node = read_yaml(value, "argument");
  return node.is_scalar() && !read_scalar(node).is(DocScalar::Kind::kNull) && !node.text.starts_with("${");
}

/// Parses a pin of the other system. Helm passes a.b=c on as "yamlUpdates.a\.b=c".
std::optional<DocPin> doc_pin(const DocNode& root, const Rows& rows, const std::string& pin) {
  const size_t equals = pin.find('=');
  if (equals == std::string::npos || equals == 0 ||
      std::string_view("+-*/:~@").find(pin[equals - 1]) != std::string_view::npos)
    return std::nullopt;
  std::string path = pin.substr(0, equals);
  constexpr std::string_view kHelm = "yamlUpdates.";
  if (path.starts_with(kHelm)) path.erase(0, kHelm.size());
  std::erase(path, '\\');
  const DocNode* there = root.at(path);
  if (!path.starts_with("variables.") && there == nullptr && !known_path(rows, path)) return std::nullopt;
  DocPin out = {{}, pin.substr(equals + 1)};
  if (there != nullptr && there->is_map() && names_one_value(out.value)) return std::nullopt;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    out.keys.push_back(path.substr(at, dot - at));
    at = dot + 1;
  }
  return out;
}

/// Removes a.b from the file for "~a.b". Returns false for a key of Tycho.
bool take_out(DocNode& root, const Rows& rows, const PinArgument& pin) {
  if (!pin.text.starts_with('~') || pin.text.find('=') != std::string::npos) return false;
  const std::string path = pin.text.substr(1);
  if (root.at(path) == nullptr) {
    if (known_path(rows, path))
      fail(ExitCode::kUsage,
           "[import] argument {}: ~{}: the file does not contain it, so there is nothing to remove",
           pin.number, path);
    return false;
  }
  const size_t dot = path.rfind('.');
  DocNode* parent = const_cast<DocNode*>(root.at(dot == std::string::npos ? "" : path.substr(0, dot)));
  const DocNode* taken = root.at(path);
  std::erase_if(parent->entries, [&](const KeyedNode& entry) { return &entry.node == taken; });
  if (parent->is_list()) parent->items.erase(parent->items.begin() + (taken - parent->items.data()));
  return true;
}

/// Removes initial values beside model.weights=PATH, since they matter only to new weights.
void take_out_first_values(DocNode& root, const std::vector<PinArgument>& pins) {
  const auto gives_weights = [](const PinArgument& pin) { return pin.text.starts_with("model.weights="); };
  DocNode* model = root.find("model");
  if (model == nullptr || std::none_of(pins.begin(), pins.end(), gives_weights)) return;
  std::erase_if(model->entries, [](const KeyedNode& entry) {
    return entry.key == "init_config" || entry.key == "init_method";
  });
}

void apply(DocNode& root, const DocPin& pin, const PinArgument& argument) {
  DocNode* here = &root;
  for (const std::string& key : pin.keys) {
    if (!here->is_map())
      *here = DocNode{.kind = DocNode::Kind::kMap,
                      .line = here->line,
                      .last_line = here->line,
                      .argument = here->argument};
    if (here->find(key) == nullptr) here->entries.push_back({key, DocNode{.argument = argument.number}});
    here = here->find(key);
  }
  const int line = here->line, last_line = here->last_line;
  const SourceLocation key = here->key;
  *here = read_yaml(pin.value, "argument " + std::to_string(argument.number));
  here->line = line;
  here->last_line = last_line;
  here->key = key;
  here->argument = argument.number;
}

void refuse_bad_text(const std::string& file, const std::string& text) {
  const std::optional<size_t> bad = find_utf8_error(text);
  const size_t at = std::min(bad.value_or(text.size()), text.find('\0'));
  if (at >= text.size()) return;
  fail(ExitCode::kUnusable, "[{}] line {}: this is not UTF-8 text; save the file as UTF-8", file,
       std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1);
}

}  // namespace

bool is_foreign_sweep(const std::string& file, const std::string& text) {
  return is_foreign_recipe(file) && !is_toml(file) && is_wandb_sweep(read_yaml(text, file));
}

Imported import_recipe(const std::string& file, const std::string& given,
                       const std::vector<PinArgument>& pins) {
  refuse_bad_text(file, given);
  std::string text = given;
  Imported out;
  // JSON is YAML, whose reader knows lines.
  DocNode root;
  if (!is_json(file) || is_titan_json(Json::parse(text, nullptr, false)))
    root = is_toml(file) ? read_toml(text, file) : read_yaml(text, file);
  if (is_json(file) && root.entries.empty()) {
    out.lua = recipe_of_hf_config(parse_json(text, file), name_of_file(file), file, out.notes);
    out.pins = pins;
    return out;
  }
  if (is_wandb_sweep(root)) {
    out = import_wandb_sweep(root, text, file, name_of_file(file));
    out.pins = pins;
    return out;
  }
  if (is_json(file)) use_titan_keys(root);
  if (is_of_mcli(root)) take_parameters(root, text, file, out.notes);
  const System& system = system_of(root, file);
  for (const PinArgument& pin : pins) {
    if (take_out(root, system.rows(), pin)) continue;
    if (const std::optional<DocPin> mine = doc_pin(root, system.rows(), pin.text)) {
      apply(root, *mine, pin);
    } else {
      out.pins.push_back(pin);
    }
  }
  take_out_first_values(root, out.pins);
  Mapper mapper(std::move(root), text, file);
  if (system.explain_unknown != nullptr) mapper.explain_unknown(system.explain_unknown);
  system.map(mapper);
  out.lua = mapper.finish(name_of_file(file), system.name);
  out.notes.insert(out.notes.end(), mapper.notes().begin(), mapper.notes().end());
  out.places = mapper.places();
  return out;
}

void print_note(const std::string& file, const std::string& note) {
  std::fputs(fmt::format("note: {}  {}\n", file, note).c_str(),
             stderr);  // must not fail where stderr is closed
}

void refuse_program(const std::string& file) {
  if (!file.ends_with(".py")) return;
  fail(ExitCode::kUsage,
       "[import] expected a config as text, got {}, a Python program. TorchTitan saves what its program "
       "makes: "
       "start it once with --debug.save_config_file=config.json (v0.2: --job.save_config_file), and import "
       "config.json from its dump_folder",
       file);
}

void import_request(RecipeRequest& request) {
  refuse_program(request.file);
  if (is_json(request.file))
    fail(ExitCode::kUsage,
         "[import] expected a recipe, got {}: `tycho import {} -o NAME.lua` makes one of a TorchTitan config "
         "or a "
         "Hugging Face config.json",
         request.file, request.file);
  if (!is_foreign_recipe(request.file)) return;
  const auto given = request.files.find(request.file);
  std::string text;
  if (given != request.files.end()) {
    text = given->second;
  } else {
    SourceFile file = read_source(request.file);
    if (!file.text) fail(ExitCode::kRecipe, "[import] {}", file.message);
    text = std::move(*file.text);
  }
  Imported made = import_recipe(request.file, text, request.pins);
  for (const std::string& note : made.notes) print_note(request.file, note);
  request.origins[request.file] = {std::move(text), std::move(made.places)};
  request.file += ".lua";
  request.files[request.file] = std::move(made.lua);
  request.pins = std::move(made.pins);
}

}  // namespace tycho
