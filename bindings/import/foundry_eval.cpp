// When LLM Foundry evaluates, and on what: eval_interval, eval_first, eval_loader and eval_loaders.
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>

#include "bindings/import/systems.h"
#include "trainer/recipe/eval.h"

namespace tycho {
namespace {

constexpr std::array kEvalLoaders = {"eval_loader", "eval_loaders"};

/// Returns the evaluation loader of the file with its key.
std::optional<DocEntry> eval_loader(Mapper& mapper) {
  for (const char* key : kEvalLoaders) {
    const DocNode* node = mapper.root().find(key);
    if (node != nullptr && !(node->is_scalar() && mapper.is_null(node))) return DocEntry{key, *node};
  }
  return std::nullopt;
}

bool is_set_true(Mapper& mapper, const char* key) {
  const DocNode* node = mapper.root().find(key);
  return node != nullptr && mapper.text_of(node) == "true";
}

bool has_eval(Mapper& mapper) { return foundry_evaluates(mapper) && eval_loader(mapper); }

Row when_evaluating(const char* key, const char* target, Convert convert) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (!has_eval(mapper)) return mapper.remark(entry, "there is no eval_loader");
    to(key, target, convert).act(mapper, entry);
  });
}

void map_interval(Mapper& mapper, const DocEntry& entry) {
  if (!foundry_is_never(mapper, &entry.node))
    return when_evaluating("eval_interval", "eval.every", duration_in("ep")).act(mapper, entry);
  if (!is_set_true(mapper, "eval_first")) return mapper.remark(entry, "nothing is evaluated");
  mapper.remark(entry, "only before the first step");
  mapper.note(entry, "with eval_first, evaluates once before training; here at the end, too");
}

void map_eval_batches(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "-1") return mapper.remark(entry, "all of it");
  if (!has_eval(mapper)) return mapper.remark(entry, "there is no eval_loader");
  mapper.note(entry,
              "counted batches of device_eval_batch_size on each rank; r.eval.batches counts global_batch");
  mapper.emit(entry, "eval.batches", mapper.expression(entry));
}

/// Maps one set. Loaders of a list have labels, which name their metrics; a single one need not have one.
void map_set(Mapper& mapper, const DocEntry& entry, const std::string& default_name,
             std::set<std::string>& taken) {
  const DocNode* label = entry.node.find("label");
  if (label == nullptr && default_name.empty())
    return mapper.problem(entry, "expected a label, which names the metrics of the set");
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

bool foundry_is_never(Mapper& mapper, const DocNode* interval) {
  if (mapper.is_null(interval)) return false;
  const std::string text = mapper.text_of(interval);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && value <= 0;
}

bool foundry_evaluates(Mapper& mapper) {
  return !foundry_is_never(mapper, mapper.root().find("eval_interval")) || is_set_true(mapper, "eval_first");
}

Rows foundry_eval_rows() {
  return {by("eval_loader", map_foundry_eval_loaders, foundry_loader_rows()),
          by("eval_loaders", map_foundry_eval_loaders), by("eval_interval", map_interval),
          when_evaluating("eval_first", "eval.first", as_is),
          by("eval_subset_num_batches", map_eval_batches)};
}

void write_foundry_eval_default(Mapper& mapper) {
  const std::optional<DocEntry> loader = eval_loader(mapper);
  if (!loader || mapper.root().find("eval_interval") != nullptr) return;
  mapper.out().write("r.eval.every = \"1ep\"  -- LLM Foundry's default", 0);
  mapper.note({"eval_interval", loader->node},
              "is not set: the sets are evaluated after every epoch, as in LLM Foundry, and at the end");
}

void map_foundry_eval_loaders(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "no evaluation");
  if (!foundry_evaluates(mapper)) return mapper.remark(entry, kNeverEvaluated);
  std::set<std::string> taken;
  if (!entry.node.is_list()) return map_set(mapper, entry, "val", taken);
  for (size_t i = 0; i < entry.node.items.size(); ++i)
    map_set(mapper, {fmt::format("{}.{}", entry.path, i), entry.node.items[i]}, "", taken);
}

}  // namespace tycho
