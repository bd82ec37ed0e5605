// The functions behind tycho.native.
#include "bindings/define/native.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "bindings/define/embedded.h"
#include "bindings/define/expression_functions.h"
#include "bindings/define/lua_util.h"
#include "bindings/define/machine_functions.h"
#include "bindings/define/model_functions.h"
#include "bindings/define/schema_functions.h"
#include "bindings/define/source_file.h"
#include "bindings/define/strings.h"
#include "bindings/define/watch.h"
#include "trainer/base/absent.h"
#include "trainer/base/bytes.h"
#include "trainer/base/duration.h"
#include "trainer/base/hash.h"
#include "trainer/base/json.h"
#include "trainer/base/json_writer.h"
#include "trainer/base/nearest.h"
#include "trainer/base/random/philox.h"
#include "trainer/base/schema.h"
#include "trainer/plan/memory_choice.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/plan_length.h"
#include "trainer/plan/unread_files.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/config_rules.h"
#include "trainer/recipe/schedule.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/run_folder/run_folder.h"
#include "trainer/run_folder/run_record.h"
#include "trainer/tasks/task_items.h"

namespace tycho {
namespace {

int push_text(lua_State* L, const std::string& text) {
  lua_pushlstring(L, text.data(), text.size());
  return 1;
}

/// duration(text) -> value, unit | nil, message
int duration(lua_State* L) {
  return protect(L, [&] {
    try {
      const Duration parsed = Duration::parse(string_argument(L, 1));
      lua_pushnumber(L, parsed.value);
      return 1 + push_text(L, unit_name(parsed.unit));
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// duration_text(value, unit) -> text
int duration_text(lua_State* L) {
  return protect(L, [&] {
    Duration parsed = Duration::parse("0" + string_argument(L, 2));
    parsed.value = luaL_checknumber(L, 1);
    return push_text(L, parsed.str());
  });
}

/// bytes(text) -> number | nil, message
int bytes(lua_State* L) {
  return protect(L, [&] {
    try {
      lua_pushnumber(L, static_cast<double>(Bytes::parse(string_argument(L, 1)).value));
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// bytes_text(number) -> text
int bytes_text(lua_State* L) {
  return protect(L, [&] { return push_text(L, Bytes{static_cast<int64_t>(luaL_checknumber(L, 1))}.str()); });
}

/// number_text(x) -> the shortest text that reads back as x
int number_text(lua_State* L) {
  return protect(L, [&] {
    const double x = luaL_checknumber(L, 1);
    if (x == std::floor(x) && std::abs(x) <= 0x1p53)
      return push_text(L, fmt::format("{}", static_cast<int64_t>(x)));
    return push_text(L, std::isnan(x) ? "nan" : fmt::format("{}", x));  // NaN has a sign
  });
}

/// nearest(word, names) -> up to three names
int nearest_names(lua_State* L) {
  return protect(L, [&] {
    std::vector<std::string> names;
    for (const Json& name : read_json(L, 2))
      names.push_back(name.is_string() ? name.get<std::string>() : name.dump());
    push_json(L, nearest(string_argument(L, 1), names));
    return 1;
  });
}

/// near_file(path) -> "" or "; did you mean ...?" with Lua files of the same folder
int near_file(lua_State* L) {
  return protect(L, [&] { return push_text(L, did_you_mean_file(string_argument(L, 1))); });
}

/// read_file(path) -> text | nil, message, absent
int read_file(lua_State* L) {
  return protect(L, [&] {
    const SourceFile file = read_source(string_argument(L, 1));
    if (file.text) return push_text(L, *file.text);
    push_refusal(L, file.message);
    lua_pushboolean(L, file.absent ? 1 : 0);
    return 3;
  });
}

/// lua_files(folder) -> list of the Lua files below it | nil, message
int lua_files(lua_State* L) {
  return protect(L, [&] {
    try {
      push_json(L, lua_files_below(string_argument(L, 1)));
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// canonical(path) -> the path without links, or the path itself when it does not exist
int canonical(lua_State* L) {
  return protect(L, [&] {
    const std::string path = string_argument(L, 1);
    std::error_code error;
    const std::filesystem::path found = std::filesystem::canonical(path, error);
    return push_text(L, error ? path : found.string());
  });
}

/// json(text) -> tables | nil, message
int json(lua_State* L) {
  return protect(L, [&] {
    try {
      push_json(L, parse_json(string_argument(L, 1), "overrides"));
      return 1;
    } catch (const Error& error) {
      return push_refusal(L, error.what());
    }
  });
}

/// utf8_error(text) -> position of the first byte that is not UTF-8, from 1 | nil
int utf8_error(lua_State* L) {
  return protect(L, [&] {
    const std::optional<size_t> bad = find_utf8_error(string_argument(L, 1));
    if (!bad) return 0;
    lua_pushnumber(L, static_cast<double>(*bad + 1));
    return 1;
  });
}

/// array(table) -> the table, marked as a list
int array(lua_State* L) {
  lua_settop(L, 1);
  mark_array(L);
  return 1;
}

/// hash(text) -> 32 hex digits
int hash(lua_State* L) {
  return protect(L, [&] { return push_text(L, hash_hex(string_argument(L, 1))); });
}

/// source_places(names) -> table from each name to its path inside the record of a run
int places_of_sources(lua_State* L) {
  return protect(L, [&] {
    Json places = Json::object();
    for (const auto& [name, place] : source_places(read_json(L, 1))) places[name] = place;
    push_json(L, places);
    return 1;
  });
}

/// Returns the files that a run would read and that do not exist.
std::vector<ConfigProblem> absent_files(const TrainConfig& config) {
  constexpr std::string_view kYet = "does not exist yet, but a run", kNow = "does not exist, and the run";
  std::vector<ConfigProblem> absent = missing_files(config);
  for (ConfigProblem& one : missing_task_files(config.icl)) absent.push_back(std::move(one));
  for (ConfigProblem& one : absent)
    if (const size_t at = one.message.find(kYet); at != std::string::npos)
      one.message.replace(at, kYet.size(), kNow);
  return absent;
}

/// check_tree(tree, with_files, num_ranks, needs_files) -> list of { path, message, warning } from rules and
/// files; with needs_files, those that do not exist or do not fit are problems
int check_tree(lua_State* L) {
  return protect(L, [&] {
    const bool with_files = lua_toboolean(L, 2) != 0;
    std::vector<ConfigProblem> problems;
    const TrainConfig config = read_config(read_json(L, 1), problems);
    if (problems.empty()) problems = check_parameters(config);
    const bool is_chosen = config.parallel.mesh == MeshSizes::kAuto ||
                           config.parallel.cp_attention == CpAttention::kAuto || leaves_memory(config);
    const lua_Integer num_ranks = is_chosen ? 0 : lua_tointeger(L, 3);  // 0: not known, or chosen to fit
    if (problems.empty() && num_ranks > 0) problems = check_config(config, num_ranks);
    if (problems.empty() && (with_files || lua_toboolean(L, 4) != 0)) problems = check_files(config);
    if (problems.empty() && lua_toboolean(L, 4) != 0) problems = absent_files(config);
    if (problems.empty() && lua_toboolean(L, 4) != 0) problems = unfit_samples(config);
    if (problems.empty() && with_files) problems = task_file_problems(config.icl);
    Json list = Json::array();
    for (const ConfigProblem& problem : problems)
      list.push_back({{"path", problem.path}, {"message", problem.message}});
    if (problems.empty() && with_files)
      for (const auto& warnings :
           {missing_files(config), unfit_samples(config), missing_task_files(config.icl),
            large_orders(config), unread_files(config)})
        for (const ConfigProblem& one : warnings)
          list.push_back({{"path", one.path}, {"message", one.message}, {"warning", true}});
    push_json(L, list);
    return 1;
  });
}

/// facts(tree) -> values derived from a recipe that passed check_tree; null for those that need absent data
int facts(lua_State* L) {
  return protect(L, [&] {
    TrainConfig config = read_config_or_fail(read_json(L, 1));
    const Plan plan = plan_length(config);
    config.step_tokens = plan.step_tokens;
    const auto known = [](int64_t count) { return count > 0 ? Json(count) : Json(nullptr); };
    push_json(
        L, {{"steps", known(plan.steps)},
            {"total_tokens", known(plan.tokens)},
            {"tokens_per_step", plan.tokens_per_step},
            {"warmup_steps", plan.steps > 0 ? Json(make_schedule(config, plan.steps, plan.num_samples).warmup)
                                            : Json(nullptr)},
            {"num_params", plan.num_params}});
    return 1;
  });
}

/// absent(name) -> a feature with this name that Tycho does not have, such as mixtures of experts | nil
int absent(lua_State* L) {
  return protect(L, [&] {
    const std::string feature = absent_feature(string_argument(L, 1));
    return feature.empty() ? 0 : push_text(L, feature);
  });
}

/// uniform(seed, name, n) -> the n-th number of a stream, in [0, 1) with 53 bits
int uniform(lua_State* L) {
  return protect(L, [&] {
    const uint64_t key = stream_key(static_cast<uint64_t>(luaL_checknumber(L, 1)), string_argument(L, 2));
    const std::array<uint32_t, 4> words = philox(key, static_cast<uint64_t>(luaL_checknumber(L, 3)));
    const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
    lua_pushnumber(L, static_cast<double>(bits) * 0x1p-53);
    return 1;
  });
}

/// applied_commands(folder of a run) -> list of { step, name, arguments, by, key }
int commands_of(lua_State* L) {
  return protect(L, [&] {
    push_json(L, applied_commands(string_argument(L, 1)));
    return 1;
  });
}

/// exit_of(raised) -> the exit code of an error object made by Tycho | nil
int exit_of_raised(lua_State* L) {
  const std::optional<ExitCode> code = exit_of(L, 1);
  if (!code) return 0;
  lua_pushinteger(L, static_cast<int>(*code));
  return 1;
}

/// with_exit(table, code) -> the table as an error object; unchanged without a code
int with_exit(lua_State* L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const bool has_code = !lua_isnoneornil(L, 2);
  const auto code = static_cast<ExitCode>(has_code ? luaL_checkinteger(L, 2) : 0);
  lua_settop(L, 1);
  if (has_code) set_exit(L, code);
  return 1;
}

int load_native(lua_State* L) {
  return protect(L, [&] {
    const luaL_Reg functions[] = {{"duration", duration},
                                  {"duration_text", duration_text},
                                  {"bytes", bytes},
                                  {"bytes_text", bytes_text},
                                  {"number_text", number_text},
                                  {"nearest", nearest_names},
                                  {"near_file", near_file},
                                  {"read_file", read_file},
                                  {"lua_files", lua_files},
                                  {"canonical", canonical},
                                  {"json", json},
                                  {"utf8_error", utf8_error},
                                  {"array", array},
                                  {"hash", hash},
                                  {"limited", call_limited},
                                  {"source_places", places_of_sources},
                                  {"check_tree", check_tree},
                                  {"facts", facts},
                                  {"absent", absent},
                                  {"uniform", uniform},
                                  {"applied_commands", commands_of},
                                  {"exit_of", exit_of_raised},
                                  {"with_exit", with_exit}};
    lua_newtable(L);
    for (const luaL_Reg& function : functions) {
      lua_pushcfunction(L, function.func);
      lua_setfield(L, -2, function.name);
    }
    add_machine_functions(L);
    add_model_functions(L);
    add_schema_functions(L);
    add_expression_functions(L);
    lua_pushlightuserdata(L, nullptr);
    lua_setfield(L, -2, "null");
    push_text(L, TYCHO_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushinteger(L, static_cast<int>(ExitCode::kRecipe));
    lua_setfield(L, -2, "exit_recipe");
    lua_pushinteger(L, static_cast<int>(ExitCode::kInterrupted));
    lua_setfield(L, -2, "exit_interrupted");
    lua_pushinteger(L, static_cast<int>(ExitCode::kUsage));
    lua_setfield(L, -2, "exit_usage");
    push_strings(L);
    lua_setfield(L, -2, "strings");
    push_json(L, schema_with_presets());
    lua_setfield(L, -2, "schema");
    return 1;
  });
}

int load_embedded(lua_State* L) {
  const std::string_view name = luaL_checkstring(L, 1);
  for (const EmbeddedModule& module : embedded_modules()) {
    if (name != module.name) continue;
    const int status =
        luaL_loadbuffer(L, module.text.data(), module.text.size(), (std::string("=") + module.file).c_str());
    if (status != 0) return lua_error(L);
    lua_call(L, 0, 1);
    return 1;
  }
  return luaL_error(L, "no embedded module %s", name.data());
}

}  // namespace

void open_library(lua_State* L) {
  lua_getglobal(L, "package");
  // Only Tycho's own modules: no file of the working folder or the system can replace one.
  for (const char* search : {"path", "cpath"}) {
    lua_pushliteral(L, "");
    lua_setfield(L, -2, search);
  }
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, load_native);
  lua_setfield(L, -2, "tycho.native");
  lua_pushcfunction(L, luaopen_ffi);  // for symbols; the require of recipes does not find it
  lua_setfield(L, -2, LUA_FFILIBNAME);
  for (const EmbeddedModule& module : embedded_modules()) {
    lua_pushcfunction(L, load_embedded);
    lua_setfield(L, -2, module.name);
  }
  lua_pop(L, 2);
}

}  // namespace tycho
