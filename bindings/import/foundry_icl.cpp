// icl_tasks and eval_gauntlet of LLM Foundry as r.icl.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bindings/import/mapper.h"
#include "bindings/import/systems.h"

namespace tycho {
namespace {

/// Maps metric_names. Accuracies are always measured, under the names listed here.
void map_metric_names(Mapper& mapper, const DocEntry& entry) {
  bool calibration = false;
  for (const DocNode& item : entry.node.items) {
    const std::string name = mapper.text_of(&item);
    if (name.ends_with("ExpectedCalibrationError"))
      calibration = true;
    else if (!name.starts_with("InContextLearning") || !name.ends_with("Accuracy"))
      mapper.problem({entry.path, item}, fmt::format("{} is not measured; remove it", name));
  }
  if (calibration)
    mapper.emit(entry, "calibration_error", "true");
  else
    mapper.remark(entry, "the accuracy is always measured");
}

void map_path(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node).find("://") != std::string::npos)
    return mapper.problem(entry, "expected a .jsonl on this machine: download it and write its path");
  mapper.emit(entry, "path", mapper.expression(entry));
}

constexpr const char* kFields = "items have their fields under LLM Foundry's own names";

const Rows kTask = {
    to("label", "label"),
    by("dataset_uri", map_path),
    to("icl_task_type", "type",
       words({{"language_modeling", "language_modeling"},
              {"multiple_choice", "multiple_choice"},
              {"schema", "schema"},
              {"generation_task_with_answers", "generation_task_with_answers"}})),
    to("num_fewshot", "num_fewshot"),
    by("metric_names", map_metric_names),
    to("prompt_string", "prompt_string"),
    to("example_delimiter", "example_delimiter"),
    to("continuation_delimiter", "continuation_delimiter"),
    to("question_prelimiter", "question_prelude"),
    to("prelimiter", "question_prelude"),
    to("has_categories", "has_categories"),
    to("fewshot_random_seed", "fewshot_random_seed"),
    to("max_seq_len", "max_seq_len"),
    to("cot_delimiter", "cot_delimiter"),
    to("early_stopping_criteria", "early_stopping_criteria"),
    to("do_normalization", "do_normalization"),
    left_out("batch_size", "a batch has as many tokens as a micro-batch"),
    left_out("destination_path", "the file is read where it lies"),
    only("pad_tok_id", {"null"}, "nothing is padded with it"),
    only("generation_kwargs", {"null", "{}"}, "answers are written greedily"),
    only("hf_loading_vars", {"null", "{}"}, kFields),
    only("hf_parsing_map", {"null", "{}"}, kFields),
    only("strip_dataset", {"true"}, "texts are stripped"),
};

/// Returns the length of a task: icl_seq_len, or else the length of the training data.
std::vector<std::string> own_length(Mapper& mapper, const DocNode& task) {
  if (task.find("max_seq_len") != nullptr) return {};
  for (const char* key : {"icl_seq_len", "max_seq_len"})
    if (const DocNode* length = mapper.root().find(key); !mapper.is_null(length))
      return {"max_seq_len = " + mapper.text_of(length)};
  return {};
}

/// Writes the interval, which all evaluators of LLM Foundry share; an epoch by default.
void write_interval(Mapper& mapper, const DocEntry& entry) {
  const DocNode* every = mapper.root().find("eval_interval");
  const bool only_first = foundry_is_never(mapper, every);
  const auto length = only_first         ? std::nullopt
                      : every == nullptr ? std::optional<std::string>("\"1ep\"")
                                         : duration_in("ep")(mapper, {"eval_interval", *every});
  if (length) mapper.out().write("r.icl.every = " + *length, 0, "-- eval_interval", entry.node.place());
  const DocNode* first = mapper.root().find("eval_first");
  if (first != nullptr && mapper.text_of(first) == "true") mapper.out().write("r.icl.first = true", 0);
}

void map_icl_tasks(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node) && entry.node.is_scalar()) return mapper.remark(entry, "no tasks");
  if (!foundry_evaluates(mapper)) return mapper.remark(entry, kNeverEvaluated);
  if (!entry.node.is_list())
    return mapper.problem(
        entry, fmt::format("expected the tasks themselves, got {}: copy the list icl_tasks of that "
                           "file here",
                           brief(entry.node)));
  for (size_t i = 0; i < entry.node.items.size(); ++i) {
    const DocEntry task = {fmt::format("{}.{}", entry.path, i), entry.node.items[i]};
    if (!task.node.is_map()) {
      mapper.problem(task, "expected a task: { label, dataset_uri, num_fewshot, icl_task_type }");
      continue;
    }
    mapper.component(task, fmt::format("icl.tasks[{}]", i + 1), "", kTask, own_length(mapper, task.node));
  }
  write_interval(mapper, entry);
}

/// Returns { { name = "copa", num_fewshot = 0, random_baseline = 0.5 }, ... }; nullopt after adding a
/// problem.
std::optional<std::string> benchmarks_of(Mapper& mapper, const DocEntry& category) {
  const DocNode* list = category.node.find("benchmarks");
  if (list == nullptr || !list->is_list()) {
    mapper.problem(category,
                   "expected a category: { name, benchmarks: [{ name, num_fewshot, random_baseline }] }");
    return std::nullopt;
  }
  std::string all;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const DocNode& one = list->items[i];
    std::string fields;
    for (const char* key : {"name", "num_fewshot", "random_baseline"}) {
      const DocNode* value = one.find(key);
      if (value == nullptr) {
        mapper.problem({fmt::format("{}.benchmarks.{}", category.path, i), one},
                       fmt::format("expected {}", key));
        return std::nullopt;
      }
      fields +=
          fmt::format("{}{} = {}", fields.empty() ? "" : ", ", key,
                      mapper.expression({fmt::format("{}.benchmarks.{}.{}", category.path, i, key), *value}));
    }
    all += fmt::format("{}{{ {} }}", all.empty() ? "" : ", ", fields);
  }
  return "{ " + all + " }";
}

void map_categories(Mapper& mapper, const DocEntry& entry) {
  for (size_t i = 0; i < entry.node.items.size(); ++i) {
    const DocEntry category = {fmt::format("{}.{}", entry.path, i), entry.node.items[i]};
    const DocNode* name = category.node.find("name");
    const auto benchmarks = benchmarks_of(mapper, category);
    if (name == nullptr || !benchmarks) continue;
    mapper.emit(category, fmt::format("icl.gauntlet.categories[{}]", lua_quoted(mapper.text_of(name))),
                *benchmarks);
  }
}

std::set<std::string> category_names(Mapper& mapper) {
  std::set<std::string> names;
  const DocNode* list = mapper.root().at("eval_gauntlet.categories");
  if (list == nullptr) return names;
  for (const DocNode& one : list->items)
    if (const DocNode* name = one.find("name")) names.insert(mapper.text_of(name));
  return names;
}

/// Maps an average. Published gauntlets name categories that are commented out there; LLM Foundry averages
/// the others.
void map_average(Mapper& mapper, const DocEntry& average, const std::string& name,
                 const std::set<std::string>& categories) {
  std::vector<std::string> there, missing;
  for (const DocNode& item : average.node.items) {
    const std::string category = mapper.text_of(&item);
    if (categories.contains(category))
      there.push_back(lua_quoted(category));
    else
      missing.push_back(category);
  }
  if (!missing.empty())
    mapper.note(average, fmt::format("without {}, of which there {} no {}, as LLM Foundry has it",
                                     fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are",
                                     missing.size() == 1 ? "category" : "categories"));
  if (there.empty()) return mapper.remark(average, "none of its categories is there");
  mapper.emit(average, fmt::format("icl.gauntlet.averages[{}]", lua_quoted(name)),
              fmt::format("{{ {} }}", fmt::join(there, ", ")));
}

void map_averages(Mapper& mapper, const DocEntry& entry) {
  const std::set<std::string> categories = category_names(mapper);
  for (const KeyedNode& one : entry.node.entries) {
    const DocEntry average = {entry.path + "." + one.key, one.node};
    if (!one.node.is_list())
      mapper.problem(average, "expected a list of categories");
    else
      map_average(mapper, average, one.key, categories);
  }
}

const Rows kGauntlet = {
    to("weighting", "icl.gauntlet.weighting"),
    to("subtract_random_baseline", "icl.gauntlet.subtract_random_baseline"),
    to("rescale_accuracy", "icl.gauntlet.rescale_accuracy"),
    left_out("benchmark_sizes", "counted"),
    by("categories", map_categories),
    by("averages", map_averages),
};

void map_gauntlet(Mapper& mapper, const DocEntry& entry) {
  if (mapper.is_null(&entry.node) && entry.node.is_scalar()) return mapper.remark(entry, "no gauntlet");
  if (!foundry_evaluates(mapper)) return mapper.remark(entry, kNeverEvaluated);
  if (!entry.node.is_map())
    return mapper.problem(entry,
                          fmt::format("expected the gauntlet itself, got {}: copy the eval_gauntlet of that "
                                      "file here",
                                      brief(entry.node)));
  mapper.walk(entry, kGauntlet);
}

}  // namespace

Rows foundry_icl_rows() {
  return {by("icl_tasks", map_icl_tasks), by("eval_gauntlet", map_gauntlet, kGauntlet),
          left_out("icl_seq_len", "each task has it as max_seq_len"),
          only("icl_subset_num_batches", {"null", "-1"}, "tasks are measured whole")};
}

}  // namespace tycho
