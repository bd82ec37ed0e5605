// Calls the Lua standard library for the host.
#include "bindings/define/recipe.h"

#include "bindings/define/native.h"
#include "trainer/base/hash.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/secrets.h"
#include "trainer/recipe/config_io.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {
namespace {

/// Calls require(module)[function](request) in a fresh state, or in one that the caller keeps.
Json ask_lua(const char* module, const char* function, const Json& request, const LuaLimits& limits,
             bool trace, const std::shared_ptr<LuaState>& state = std::make_shared<LuaState>()) {
  lua_State* L = state->get();
  open_library(L);
  const LuaWatch watch(L, limits);
  lua_settop(L, 0);
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  call_lua(L, 1, 1, trace);
  lua_getfield(L, -1, function);
  push_json(L, request);
  call_lua(L, 1, 1, trace);
  return read_json(L, -1);
}

Json place_json(const SourceLocation& place) {
  if (place.argument > 0) return {{"argument", place.argument}};
  return {{"line", place.line}, {"col", place.col}, {"len", place.len}};
}

void throw_report(const Json& result) {
  if (result.at("problems") == 0) return;
  throw RecipeError(result.at("report").get<std::string>(),
                    json_without_secrets(result.value("problem_list", Json::array())));
}

}  // namespace

void refuse_secrets(const Json& part, const std::string& path) {
  if (part.is_string() && holds_secret(part.get<std::string>()))
    fail(ExitCode::kRecipe,
         "[recipe] {} holds a secret of the environment, and a run keeps its recipe in clear. Leave it out; "
         "if "
         "it is none, read it by t.env from a variable whose name has no word such as KEY or TOKEN",
         path);
  if (!part.is_structured()) return;
  for (const auto& [key, value] : part.items()) {
    if (holds_secret(key)) refuse_secrets(key, path);
    refuse_secrets(value, path.empty() ? key : path + "." + key);
  }
}

Json origins_json(const std::map<std::string, RecipeOrigin>& origins) {
  Json made_from = Json::object();
  for (const auto& [name, origin] : origins) {
    Json lines = Json::array();
    for (const SourceLocation& place : origin.places) lines.push_back(place_json(place));
    made_from[name + ".lua"] = {{"file", name}, {"text", origin.text}, {"lines", std::move(lines)}};
  }
  return made_from;
}

Json recipe_request_json(const RecipeRequest& recipe) {
  Json arguments = Json::array();
  for (const PinArgument& pin : recipe.pins)
    arguments.push_back({{"argument", pin.number}, {"text", pin.text}});
  Json request = {{"arguments", arguments},
                  {"trace", recipe.trace},
                  {"lint", recipe.lint},
                  {"needs_files", recipe.needs_files}};
  if (recipe.quiet) request["quiet"] = true;
  if (recipe.num_ranks > 0) request["num_ranks"] = recipe.num_ranks;
  if (!recipe.file.empty()) request["file"] = recipe.file;
  for (const auto& [name, text] : recipe.files) request["files"][name] = text;
  request["only_files"] = recipe.only_files;
  if (!recipe.origins.empty()) request["made_from"] = origins_json(recipe.origins);
  return request;
}

ResolvedRecipe to_resolved(const Json& result, const std::map<std::string, RecipeOrigin>& origins) {
  ResolvedRecipe recipe;
  recipe.config = read_config_or_fail(result.at("tree"));
  if (result.contains("schedule"))
    set_factors(recipe.config.scheduler, result.at("schedule").get<std::vector<double>>());
  recipe.name = result.at("name");
  recipe.tree = config_to_json(recipe.config);
  refuse_secrets(recipe.tree);
  recipe.hash = config_hash(recipe.tree);
  recipe.lua = result.at("lua");
  recipe.history = json_without_secrets(result.at("history"));
  recipe.warnings = json_without_secrets(result.value("warnings", Json::array()));
  for (const auto& [name, value] : result.at("environment").items()) {
    const Json kept = value.is_string() && value != kMasked ? Json(recordable_value(name, value)) : value;
    recipe.history["env." + name] = Json::array({{{"by", "environment"}, {"at", name}, {"value", kept}}});
  }
  for (const auto& [file, origin] : origins) recipe.sources[file] = origin.text;
  for (const auto& [file, text] : result.at("sources").items()) recipe.sources[file] = text;
  for (const auto& [file, text] : recipe.sources) {
    recipe.history["source." + file] =
        Json::array({{{"by", "source"}, {"at", file}, {"value", hash_hex(text)}}});
  }
  for (const auto& [name, commit] : result.at("commits").items())
    recipe.history["hub." + name] = Json::array({{{"by", "hub"}, {"at", name}, {"value", commit}}});
  for (const auto& [folder, hash] : result.at("modules").items())
    recipe.history["module." + folder] = Json::array({{{"by", "module"}, {"at", folder}, {"value", hash}}});
  return recipe;
}

ResolvedRecipe resolve_recipe(const RecipeRequest& request) {
  RecipeVerdict verdict = try_recipe(request);
  if (!verdict.recipe) throw RecipeError(verdict.report, std::move(verdict.problems));
  return *std::move(verdict.recipe);
}

IclConfig read_tasks_file(const std::string& file, bool trace) {
  const Json result = ask_lua("tycho.tasks", "load", {{"file", file}, {"trace", trace}}, {}, trace);
  throw_report(result);
  std::vector<ConfigProblem> problems;
  auto config = from_json<IclConfig>(result.at("tree"), problems);
  if (!problems.empty())
    fail(ExitCode::kRecipe, "[icl] {}: {}: {}", file, problems[0].path, problems[0].message);
  return config;
}

RecipeRequest own_request(const ResolvedRecipe& recipe) {
  RecipeRequest request = {
      .file = "recipe.lua", .files = {{"recipe.lua", recipe.lua}}, .only_files = true, .quiet = true};
  std::vector<std::string> names;
  for (const auto& [name, text] : recipe.sources) names.push_back(name);
  for (const auto& [name, place] : source_places(names)) request.files[place] = recipe.sources.at(name);
  return request;
}

ResolvedRecipe in_own_state(const ResolvedRecipe& recipe) { return resolve_recipe(own_request(recipe)); }

RecipeVerdict try_recipe(const RecipeRequest& request, const std::shared_ptr<LuaState>& state,
                         const LuaLimits& limits) {
  const Json result =
      ask_lua("tycho.session", "load", recipe_request_json(request), limits, request.trace, state);
  RecipeVerdict verdict;
  for (const auto& [file, text] : result.at("sources").items()) verdict.files.push_back(file);
  if (result.at("problems") != 0) {
    const Json& found = result.at("verdict");
    verdict.report = without_secrets(result.at("report").get<std::string>());
    verdict.problems = json_without_secrets(result.at("problem_list"));
    verdict.kind = found.at("kind");
    verdict.open = found.at("open").get<std::vector<std::string>>();
    verdict.open_on_purpose = found.at("on_purpose");
    return verdict;
  }
  ResolvedRecipe recipe = to_resolved(result, request.origins);
  recipe.state = state;
  verdict.recipe = std::move(recipe);
  return verdict;
}

ProblemList problem_list(const std::vector<SourceProblem>& problems) {
  ProblemList list = Json::array();
  for (const auto& [file, place, message] : problems) {
    Json one = {{"message", message}};
    if (place.argument > 0) one["argument"] = place.argument;
    if (place.argument == 0) one["file"] = file;
    if (place.line > 0) one["line"] = place.line;
    if (place.col > 0) one["column"] = place.col;
    list.push_back(std::move(one));
  }
  return list;
}

std::string problem_report(const std::vector<SourceProblem>& problems,
                           const std::map<std::string, std::string>& sources) {
  Json request = {{"problems", Json::array()}, {"sources", sources}};
  for (const SourceProblem& problem : problems) {
    const bool is_known = problem.place.line > 0 || problem.place.argument > 0;
    Json one = is_known ? place_json(problem.place) : Json::object();
    if (problem.place.argument == 0) one["file"] = problem.file;
    one["message"] = problem.message;
    request["problems"].push_back(std::move(one));
  }
  // Kept: making a state takes far longer than the report.
  thread_local const auto state = std::make_shared<LuaState>();
  return ask_lua("tycho.report", "of_list", request, {}, false, state).at("text");
}

Json recipe_identity(const ResolvedRecipe& recipe) {
  Json sources = Json::object();
  for (const auto& [file, text] : recipe.sources) sources[file] = hash_hex(text);
  return {{"name", recipe.name}, {"hash", recipe.hash}, {"sources", std::move(sources)}};
}

Json show_config(const ConfigQuery& query) {
  Json request = recipe_request_json(query.recipe);
  if (!query.under.empty()) request["under"] = query.under;
  if (!query.why.empty()) request["why"] = query.why;
  request["changed"] = query.changed;
  Json result = json_without_secrets(ask_lua("tycho.show", "config", request, {}, query.recipe.trace));
  throw_report(result);
  if (result.contains("unknown")) throw Error(result.at("unknown").get<std::string>(), ExitCode::kUsage);
  return result;
}

std::vector<std::string> complete_override(const std::vector<std::string>& words) {
  return ask_lua("tycho.complete", "main", {{"words", words}}, {}, false).at("candidates");
}

std::string keys_page(const std::vector<std::string>& recipes) {
  const Json page = ask_lua("tycho.keys", "main", {{"recipes", recipes}}, {}, false);
  throw_report(page);
  return page.at("text");
}

std::map<std::string, std::string> make_stubs(const Json& classes, const std::vector<std::string>& recipes) {
  const Json stubs = ask_lua("tycho.stubs", "main", {{"classes", classes}, {"recipes", recipes}}, {}, false);
  throw_report(stubs);
  return stubs.at("files");
}

Json run_doctor_files(const std::vector<std::string>& files) {
  return ask_lua("tycho.doctor", "run", {{"files", files}}, {}, false).at("findings");
}

SpecResult run_specs(const std::vector<std::string>& files, bool trace,
                     const std::function<void(lua_State*)>& prepare) {
  const LuaLimits limits = {.max_instructions = int64_t{1} << 40, .max_seconds = 600};
  const auto state = std::make_shared<LuaState>();
  open_library(state->get());
  prepare(state->get());
  const Json result = ask_lua("tycho.spec", "main", {{"files", files}}, limits, trace, state);
  return {result.at("passed"), result.at("failed"), result.at("failures")};
}

}  // namespace tycho
