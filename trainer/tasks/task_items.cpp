// Checks every field, so that a task cannot fail after hours of training.
#include "trainer/tasks/task_items.h"

#include <algorithm>
#include <filesystem>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/hub/hub_files.h"
#include "trainer/tasks/python_text.h"

namespace tycho {
namespace {

/// One line's object, and its name in messages.
class ItemLine {
 public:
  ItemLine(const Json& object, const IclTaskConfig& task, std::string place)
      : object_(object), task_(task), place_(std::move(place)) {}

  std::string text(const char* field) const {
    const Json* found = find(field);
    if (found == nullptr || !found->is_string()) refuse(field, "a string", found);
    return found->get<std::string>();
  }
  std::string stripped(const char* field) const { return std::string(python_strip(text(field))); }
  std::vector<std::string> texts(const char* field, size_t least) const {
    const Json* found = find(field);
    const auto is_text = [](const Json& one) { return one.is_string(); };
    if (found == nullptr || !found->is_array() || found->size() < least ||
        !std::all_of(found->begin(), found->end(), is_text))
      refuse(field, least > 0 ? "a list of two strings or more" : "a list of strings", found);
    return found->get<std::vector<std::string>>();
  }
  int64_t index(const char* field, size_t size) const {
    const Json* found = find(field);
    if (found == nullptr || !found->is_number_integer() || found->get<int64_t>() < 0 ||
        found->get<int64_t>() >= static_cast<int64_t>(size))
      refuse(field, fmt::format("a number from 0 to {}", size - 1), found);
    return found->get<int64_t>();
  }
  const Json* find(const char* field) const {
    const auto found = object_.find(field);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  [[noreturn]] void refuse(const char* field, const std::string& wanted, const Json* given) const {
    fail(ExitCode::kUnusable, "[icl] {}: an item of type {} has \"{}\", {}; got {}", place_,
         enum_name(task_.type), field, wanted, given == nullptr ? "none" : given->dump().substr(0, 80));
  }

  const Json& object_;
  const IclTaskConfig& task_;
  std::string place_;
};

IclItem item_of(const ItemLine& line, const IclTaskConfig& task) {
  IclItem item;
  switch (task.type) {
    case IclType::kLanguageModeling:
      item.context = line.stripped("context");
      item.answer = line.stripped("continuation");
      break;
    case IclType::kMultipleChoice:
      item.context = line.stripped("query");
      item.choices = line.texts("choices", 2);
      item.gold = line.index("gold", item.choices.size());
      break;
    case IclType::kSchema:
      item.choices = line.texts("context_options", 2);
      item.answer = line.stripped("continuation");
      item.gold = line.index("gold", item.choices.size());
      break;
    case IclType::kGeneration:
      item.context = line.stripped("context");
      item.answer = line.stripped("answer");
      item.aliases = {line.text("answer")};
      if (line.find("aliases") != nullptr)
        for (std::string& alias : line.texts("aliases", 0)) item.aliases.push_back(std::move(alias));
      if (line.find("chain_of_thought") != nullptr) item.chain_of_thought = line.stripped("chain_of_thought");
      break;
  }
  if (task.has_categories) item.category = line.text("category");
  return item;
}

bool exists(const IclTaskConfig& task) {
  std::error_code error;
  return is_hub_name(task.path) || std::filesystem::exists(task.path, error);
}

std::string path_key(size_t task) { return fmt::format("icl.tasks[{}].path", task + 1); }

}  // namespace

std::vector<IclItem> read_task_items(const IclTaskConfig& task) {
  const std::string text = read_file(local_path(task.path));
  std::vector<IclItem> items;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (python_strip(line).empty()) continue;
    const std::string place = fmt::format("{}:{}", task.path, number);
    const Json object = parse_json(line, place);
    if (!object.is_object())
      fail(ExitCode::kUnusable, "[icl] {} expected a JSON object, got {}", place,
           object.dump().substr(0, 80));
    items.push_back(item_of(ItemLine(object, task, place), task));
  }
  if (items.empty())
    fail(ExitCode::kUnusable, "[icl] {} has no items: expected one JSON object per line", task.path);
  return items;
}

std::vector<ConfigProblem> task_file_problems(const IclConfig& icl) {
  std::vector<ConfigProblem> problems;
  for (size_t i = 0; i < icl.tasks.size(); ++i) {
    if (!exists(icl.tasks[i])) continue;
    try {
      read_task_items(icl.tasks[i]);
    } catch (const Error& error) {
      problems.push_back({path_key(i), error.what()});
    }
  }
  return problems;
}

std::vector<ConfigProblem> missing_task_files(const IclConfig& icl) {
  std::vector<ConfigProblem> missing;
  for (size_t i = 0; i < icl.tasks.size(); ++i)
    if (!exists(icl.tasks[i]))
      missing.push_back({path_key(i), icl.tasks[i].path + " does not exist yet, but a run needs it"});
  return missing;
}

}  // namespace tycho
