// Models that others have published, for Lua.
#include "bindings/define/model_functions.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "bindings/define/lua_util.h"
#include "trainer/base/error.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/schema.h"
#include "trainer/base/text/without_place.h"
#include "trainer/data/tokenizer/tekken.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/data/tokenizer/vocab_files.h"
#include "trainer/hub/hub_files.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/presets.h"
#include "trainer/layout/adapters.h"
#include "trainer/layout/init_matrices.h"
#include "trainer/layout/model_layout.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

/// Returns the fields that are set: a recipe leaves out absent ones, unless `usual` has them.
Json without_nulls(const Json& object, const Json& usual) {
  Json kept = Json::object();
  for (const auto& [key, value] : object.items()) {
    const Json other = usual.is_object() ? usual.value(key, Json()) : Json();
    if (!value.is_null() || !other.is_null())
      kept[key] = value.is_object() ? without_nulls(value, other) : value;
  }
  return kept;
}

/// Returns the fields of a model that a recipe has to say, without its kind.
Json model_fields(const ModelConfig& model) {
  const Json usual =
      std::visit([](const auto& family) { return to_json(std::decay_t<decltype(family)>()); }, model.value);
  Json fields = without_nulls(to_json(model), usual);
  fields.erase("kind");
  return fields;
}

/// pinned_name(hf://NAME) -> the name with its commit, "hf://REPOSITORY@REVISION", commit; the name alone if
/// its revision is a commit
int pinned_hub_name(lua_State* L) {
  return protect(L, [&] {
    HubName name = parse_hub_name(string_argument(L, 1));
    const std::string pinned = pinned_name(name.text());
    push_json(L, pinned);
    if (is_commit(name.revision)) return 1;
    name.path.clear();
    push_json(L, name.at(name.revision.empty() ? "main" : name.revision).text());
    push_json(L, parse_hub_name(pinned).revision);
    return 3;
  });
}

/// hf_model(folder, pretrained, ignore) -> fields and kind of the model in its config.json | nil, message.
/// Leaves out initial values when there are pretrained weights. ignore: list of keys that are not read.
int hf_model(lua_State* L) {
  return protect(L, [&] {
    const std::string path = string_argument(L, 1);
    const bool pretrained = lua_toboolean(L, 2) != 0;
    std::vector<std::string> ignore;
    for (const Json& key : read_json(L, 3)) ignore.push_back(key.get<std::string>());
    try {
      const HfConfig config =
          read_hf_config(read_hf_config_file(path), path + "/config.json",
                         pretrained ? HfStart::kItsWeights : HfStart::kNewWeights, ignore);
      Json fields = model_fields(config.model);
      for (const char* key : {"init", "init_std"})
        if (pretrained) fields.erase(key);
      push_json(L, fields);
      push_json(L, config.model.kind());
      return 2;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// preset(kind, name) -> fields of a model of a published size. Requires that the schema has this preset.
int preset(lua_State* L) {
  return protect(L, [&] {
    push_json(L, model_fields(preset_model(string_argument(L, 1), string_argument(L, 2))));
    return 1;
  });
}

/// The model of a recipe, without the rest.
struct ModelAlone {
  ModelConfig model;
  template <class Visitor>
  void fields(Visitor& v) {
    v("model", model, "The model.", required);
  }
};

/// parameters(model) -> list of { hidden_matrix, shape } of what a model trains, each once | nil, message
int parameters(lua_State* L) {
  return protect(L, [&] {
    try {
      std::vector<ConfigProblem> problems;
      const auto read = from_json<ModelAlone>({{"model", read_json(L, 1)}}, problems);
      if (!problems.empty()) return push_refusal(L, problems.front().message);
      const std::vector<UnitSpec> units = model_layout(read.model).units;
      Json list = Json::array();
      for (size_t u = 0; u < units.size(); ++u)
        for (const ParamSpec& param : units[u].params) {
          const bool hidden = is_of_block(units, u) && param.shape.size() == 2;
          const Json one = {{"hidden_matrix", hidden}, {"shape", param.shape}};
          if (!units[u].base && std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
        }
      push_json(L, list);
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// Pushes a matrix as a table. A model has hundreds: JSON on the way would take most of the time.
void push_matrix(lua_State* L, const InitMatrix& matrix) {
  lua_createtable(L, 0, 8);
  lua_pushlstring(L, matrix.role.data(), matrix.role.size());
  lua_setfield(L, -2, "role");
  lua_pushboolean(L, matrix.residual);
  lua_setfield(L, -2, "residual");
  for (const auto& [key, value] :
       {std::pair("layer", matrix.layer), std::pair("layers", matrix.layers), std::pair("rows", matrix.rows),
        std::pair("columns", matrix.columns), std::pair("fan_in", matrix.fan_in),
        std::pair("fan_out", matrix.fan_out)}) {
    lua_pushnumber(L, static_cast<double>(value));
    lua_setfield(L, -2, key);
  }
}

/// init_matrices(model) -> list of { role, layer, layers, rows, columns, fan_in, fan_out, residual } of the
/// matrices of a model, in forward order | nil, message
int matrices_to_begin(lua_State* L) {
  return protect(L, [&] {
    try {
      std::vector<ConfigProblem> problems;
      const auto read = from_json<ModelAlone>({{"model", read_json(L, 1)}}, problems);
      if (!problems.empty()) return push_refusal(L, problems.front().message);
      const std::vector<InitMatrix> matrices = init_matrices(read.model);
      lua_createtable(L, static_cast<int>(matrices.size()), 0);
      for (size_t i = 0; i < matrices.size(); ++i) {
        push_matrix(L, matrices[i]);
        lua_rawseti(L, -2, static_cast<int>(i) + 1);
      }
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// tokenizer_beside(folder, vocab_size) -> path of the folder's tokenizer if it suits such a model | nil
int tokenizer_beside(lua_State* L) {
  return protect(L, [&] {
    const std::string folder = string_argument(L, 1);
    const auto most = static_cast<int64_t>(luaL_checknumber(L, 2));
    for (const char* name : {kTokenizerFile, kSentencePieceFile, kVocabFile, kTekkenFile}) {
      const std::string path = folder + "/" + name;
      try {
        if ((!is_hub_name(path) && !std::filesystem::exists(path)) || load_tokenizer(path)->size() > most)
          continue;
        push_json(L, path);
        return 1;
      } catch (const Error&) {  // of an unsupported kind: the recipe goes without it
      }
    }
    return 0;
  });
}

}  // namespace

int push_refusal(lua_State* L, const std::string& message) {
  lua_pushnil(L);
  push_json(L, without_place(message));
  return 2;
}

void add_model_functions(lua_State* L) {
  const luaL_Reg functions[] = {{"hf_model", hf_model},
                                {"pinned_name", pinned_hub_name},
                                {"init_matrices", matrices_to_begin},
                                {"parameters", parameters},
                                {"preset", preset},
                                {"tokenizer_beside", tokenizer_beside}};
  for (const luaL_Reg& function : functions) {
    lua_pushcfunction(L, function.func);
    lua_setfield(L, -2, function.name);
  }
}

Json schema_with_presets() {
  Json schema = train_config_schema();
  for (Json& field : schema.at("fields")) {
    if (field.at("name") != "model") continue;
    for (auto& [kind, spec] : field.at("kinds").items())
      if (const std::vector<std::string> names = preset_names(kind); !names.empty()) spec["presets"] = names;
  }
  return schema;
}

}  // namespace tycho
