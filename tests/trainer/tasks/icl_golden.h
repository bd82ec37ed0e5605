// What LLM Foundry made of the tasks in tests/golden/icl, and the same tasks as our config has them.
#pragma once
#include <string>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/recipe/icl.h"

namespace tycho {

inline const std::string kIclGoldens = std::string(TYCHO_GOLDEN_DIR) + "/icl";

inline Json icl_golden(const std::string& name) {
  return parse_json(read_file(kIclGoldens + "/" + name), name);
}

/// The task of an entry of prompts.json in `folder`.
inline IclTaskConfig golden_task(const Json& entry, const std::string& folder = kIclGoldens) {
  IclTaskConfig task;
  task.label = entry.at("case").get<std::string>();
  task.path = folder + "/tasks/" + entry.at("file").get<std::string>() + ".jsonl";
  for (const auto& [name, type] : enum_names(IclType{}))
    if (entry.at("type") == name) task.type = type;
  task.num_fewshot = {entry.at("num_fewshot").get<int64_t>()};
  const Json& given = entry.at("given");
  const auto text = [&](const char* key, std::string& to) { to = given.value(key, to); };
  text("prompt_string", task.prompt_string);
  text("example_delimiter", task.example_delimiter);
  text("continuation_delimiter", task.continuation_delimiter);
  text("prelimiter", task.question_prelude);
  text("question_prelimiter", task.question_prelude);
  text("cot_delimiter", task.cot_delimiter);
  task.fewshot_random_seed = given.value("fewshot_random_seed", task.fewshot_random_seed);
  task.do_normalization = given.value("do_normalization", task.do_normalization);
  task.has_categories = given.value("has_categories", false);
  if (given.contains("max_seq_len")) task.max_seq_len = given.at("max_seq_len").get<int64_t>();
  if (given.contains("early_stopping_criteria"))
    task.early_stopping_criteria = given.at("early_stopping_criteria").get<std::vector<std::string>>();
  return task;
}

}  // namespace tycho
