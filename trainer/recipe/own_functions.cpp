// Functions are found by the "code" beside what they were traced to.
#include "trainer/recipe/own_functions.h"

#include <fmt/format.h>

#include "trainer/base/function_ref.h"

namespace tycho {
namespace {

/// Adds "PATH (file:line)" for each function of the recipe that `part` computes with.
void add_functions(const Json& part, const std::string& path, std::string& out) {
  if (!part.is_object()) return;
  for (const auto& [key, value] : part.items()) {
    if (key == "code" && is_function_ref(value) && !value.at("at").get_ref<const std::string&>().empty())
      out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", path,
                         value.at("at").get_ref<const std::string&>());
    else
      add_functions(value, path + "." + key, out);
  }
}

}  // namespace

std::string own_functions_advice(const Json& recipe) {
  std::string found;
  for (const char* key : {"model", "loss", "optimizer", "init"})
    if (const auto part = recipe.find(key); part != recipe.end()) add_functions(*part, key, found);
  if (found.empty()) return "";
  return fmt::format(
      " The recipe computes with functions of its own, {}: a division by 0, a log or sqrt of a number below "
      "0, or an exp that overflows, in a function or in its derivative, is NaN at every learning rate; t.max "
      "and t.where keep away from such points.",
      found);
}

}  // namespace tycho
