// The items of a task, as its JSONL file has them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/icl.h"

namespace tycho {

/// One item. Texts are stripped of white space at both ends, except for choices and aliases, like in LLM
/// Foundry.
struct IclItem {
  std::string context;               // multiple choice: the query
  std::vector<std::string> choices;  // multiple choice: answers; schema: contexts
  int64_t gold = 0;                  // index of the right choice
  std::string answer;                // language modeling and schema: the continuation
  std::vector<std::string> aliases;  // generation: every right answer; `answer` first, as written in the file
  std::string chain_of_thought;      // generation; "" for none
  std::string category;              // as in the file; "" unless the task has categories
};

/// Returns all items of a task. Throws Error (kUnusable) that names the line and the field for an item that
/// lacks what its type needs, and for a file without items.
std::vector<IclItem> read_task_items(const IclTaskConfig& task);

/// Return problems in existing files of tasks, and the missing files, by their keys: "icl.tasks[1].path".
std::vector<ConfigProblem> task_file_problems(const IclConfig& icl);
std::vector<ConfigProblem> missing_task_files(const IclConfig& icl);

}  // namespace tycho
