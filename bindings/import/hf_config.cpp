// config.json of Hugging Face -> a recipe to extend.
#include <fmt/ranges.h>

#include "bindings/import/systems.h"
#include "trainer/base/json_writer.h"
#include "trainer/convert/hf_config.h"

namespace tycho {
namespace {

std::string lua_value(const Json& value);

/// Fields that differ from `usual`, as the inside of a Lua table.
std::string lua_fields(const Json& fields, const Json& usual) {
  std::string out;
  for (const auto& [key, value] : fields.items()) {
    if (key == "kind" || value.is_null() || (usual.contains(key) && usual.at(key) == value)) continue;
    const bool is_group = value.is_object();
    const Json below = usual.value(key, Json::object());
    out += (out.empty() ? "" : ", ") + key + " = " +
           (is_group ? "{ " + lua_fields(value, below) + " }" : lua_value(value));
  }
  return out;
}

std::string lua_value(const Json& value) {
  return value.is_string() ? lua_quoted(value.get<std::string>()) : value.dump();
}

}  // namespace

std::string recipe_of_hf_config(const Json& json, const std::string& name, const std::string& place,
                                std::vector<std::string>& notes) {
  const HfConfig config = read_hf_config(json, place);
  notes = config.notes;
  const Json usual = std::visit([](const auto& model) { return to_json(std::decay_t<decltype(model)>()); },
                                config.model.value);
  const Json fields = to_json(config.model);
  return fmt::format(
      "-- The model of {}; extend this recipe with what it is trained on and for how long.\n"
      "local t = require \"tycho\"\nlocal r = t.recipe {}\n\nr.model = t.model.{} {{ {} }}\n\n"
      "r.max_duration = t.required\nr.optimizer = t.required\nr.train_data = t.required\n\nreturn r\n",
      place, lua_quoted(name), config.model.kind(), lua_fields(fields, usual));
}

}  // namespace tycho
