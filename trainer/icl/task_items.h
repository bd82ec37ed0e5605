// The items of a task, as its JSONL file has them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/icl/config.h"

namespace tycho {

/// Texts are stripped of white space at both ends, but for choices and aliases, as in LLM Foundry.
struct IclItem {
  std::string context;               // multiple choice: the query
  std::vector<std::string> choices;  // multiple choice: answers; schema: contexts
  int64_t gold = 0;                  // of the choices
  std::string answer;                // language modeling and schema: the continuation
  std::vector<std::string> aliases;  // generation: every right answer, `answer` as the file has it first
  std::string chain_of_thought;      // generation; "" for none
  std::string category;              // as in the file; "" unless the task has categories
};

/// All items of a task. Throws Error (kUnusable) that names the line and the field for one that lacks what
/// its type needs, and for a file without items.
std::vector<IclItem> read_task_items(const IclTaskConfig& task);

/// What is wrong in the files of tasks that are there, and which are not, by their keys: "icl.tasks[1].path".
std::vector<ConfigProblem> task_file_problems(const IclConfig& icl);
std::vector<ConfigProblem> missing_task_files(const IclConfig& icl);

}  // namespace tycho
