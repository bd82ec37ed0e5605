// Calls lua/tycho/sweep/init.lua.
#include "bindings/define/sweep.h"

#include "bindings/define/native.h"
#include "bindings/define/recipe.h"
#include "bindings/define/watch.h"
#include "trainer/base/json_reader.h"
#include "trainer/base/secrets.h"

namespace tycho {
namespace {

constexpr int64_t kSweepBytes = int64_t{1} << 30;  // of 10,000 trials with their values

Json to_json(const SweepRequest& sweep) {
  Json arguments = Json::array();
  for (const PinArgument& one : sweep.arguments)
    arguments.push_back({{"argument", one.number}, {"text", one.text}});
  Json request = {{"file", sweep.file}, {"arguments", arguments}, {"trace", sweep.trace}};
  if (sweep.of_recipe) {
    request["of_recipe"] = true;
    request["name"] = sweep.name;
    request["recipe"] = sweep.file;
    if (sweep.trials > 0) request["trials"] = sweep.trials;
  }
  for (const auto& [name, text] : sweep.files) request["files"][name] = text;
  if (!sweep.origins.empty()) request["made_from"] = origins_json(sweep.origins);
  return request;
}

}  // namespace

SweepProgram::SweepProgram(const SweepRequest& request)
    : state_(new LuaState(kSweepBytes)), trace_(request.trace) {
  open_library(state_->get());
  const Json result = ask("load", to_json(request));
  if (result.at("problems") != 0)
    throw RecipeError(result.at("report").get<std::string>(),
                      json_without_secrets(result.at("problem_list")));
  for (const char* kept : {"tree", "trials"}) refuse_secrets(result.at(kept), kept);
  name_ = result.at("name");
  tree_ = result.at("tree");
  for (const auto& [file, text] : result.at("sources").items()) sources_[file] = text;
  for (const auto& [file, origin] : request.origins) sources_[file] = origin.text;
  std::vector<ConfigProblem> problems;
  config_ = from_json<SweepConfig>(tree_, problems);
  if (!problems.empty())
    fail(ExitCode::kRecipe, "[sweep] {}: {}: {}", request.file, problems[0].path, problems[0].message);
  for (const Json& one : result.at("trials")) {
    trials_.push_back({"", one.at("pins").get<std::vector<std::string>>(),
                       one.at("values").get<std::map<std::string, std::string>>()});
  }
}

SweepProgram::~SweepProgram() = default;

Json SweepProgram::ask(const char* function, const Json& request) const {
  lua_State* L = state_->get();
  // 10,000 points with a function call for each take a while.
  const LuaWatch watch(L,
                       {.max_instructions = int64_t{1} << 33, .max_seconds = 60, .max_bytes = kSweepBytes});
  lua_settop(L, 0);
  lua_getglobal(L, "require");
  lua_pushstring(L, "tycho.sweep");
  call_lua(L, 1, 1, trace_);
  lua_getfield(L, -1, function);
  push_json(L, request);
  call_lua(L, 1, 1, trace_);
  Json result = read_json(L, -1);
  lua_settop(L, 0);
  return result;
}

std::string SweepProgram::broken_rule(const Json& numbers) const {
  const Json answer = ask("judge", {{"numbers", numbers}});
  if (answer.contains("failed")) {
    fail(ExitCode::kRecipe, "[sweep] the rule s.stop.{} failed: {}", answer["failed"].get<std::string>(),
         answer.at("message").get<std::string>());
  }
  return answer.is_object() && answer.contains("stop") ? answer["stop"].get<std::string>() : "";
}

bool is_sweep_text(const std::string& text) {
  for (size_t at = text.find(".sweep"); at != std::string::npos; at = text.find(".sweep", at + 1)) {
    const size_t next = text.find_first_not_of(" \t", at + 6);
    if (next != std::string::npos && (text[next] == '"' || text[next] == '\'' || text[next] == '('))
      return true;
  }
  return false;
}

}  // namespace tycho
