// config.json of Hugging Face -> a recipe to extend.
#include <fmt/format.h>

#include <filesystem>

#include "bindings/import/lua_writer.h"
#include "bindings/import/systems.h"
#include "trainer/base/json_writer.h"
#include "trainer/huggingface/hf_config.h"

namespace tycho {
namespace {

/// Returns the defaults of the family, and of each of its kinds of blocks.
Json usual_model(const ModelConfig& model) {
  Json usual =
      std::visit([](const auto& family) { return to_json(std::decay_t<decltype(family)>()); }, model.value);
  if (const auto* mpt = std::get_if<MptConfig>(&model.value))
    for (const auto& [name, kind] : mpt->blocks.kinds)
      usual["blocks"]["kinds"][name] = to_json(BlockKindConfig());
  return usual;
}

}  // namespace

bool is_local_folder(const std::string& name) {
  std::error_code error;
  return name.starts_with('/') || name.starts_with('.') || std::filesystem::is_directory(name, error);
}

std::string recipe_of_hf_config(const Json& json, const std::string& name, const std::string& place,
                                std::vector<std::string>& notes) {
  const HfConfig config = read_hf_config(json, place);
  notes = config.notes;
  return fmt::format(
      "-- The model of {}; extend this recipe with data, an optimizer and a duration.\n"
      "local t = require \"tycho\"\n"
      "local r = t.recipe {}\n"
      "\n"
      "r.model = t.model.{} {{ {} }}\n"
      "\n"
      "r.max_duration = t.required\n"
      "r.optimizer = t.required\n"
      "r.train_data = t.required\n"
      "\n"
      "return r\n",
      place, lua_quoted(name), config.model.kind(),
      lua_fields(to_json(config.model), usual_model(config.model)));
}

}  // namespace tycho
