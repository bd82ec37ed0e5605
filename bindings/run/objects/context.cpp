// The Lua objects that callbacks receive: ctx, its cmd, its dist.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#include "bindings/run/lua_callbacks.h"
#include "bindings/run/session_objects.h"
#include "trainer/base/field_types.h"

namespace tycho {
namespace {

CallbackContext& context(Call& call) { return call.self<CallbackContext>(); }
const StepMetrics& metrics(Call& call) { return context(call).info->metrics; }
const RunInfo& run_info(Call& call) { return context(call).info->run; }

template <class T>
constexpr const char* lua_type(T StepMetrics::*) {
  return std::is_integral_v<T> ? "integer" : std::is_floating_point_v<T> ? "number" : "number?";
}

/// Returns one field for every number of a step.
template <size_t... I>
std::vector<Field> metric_fields(std::index_sequence<I...>) {
  constexpr auto kFields = StepMetrics::fields();
  return {
      {std::get<I>(kFields).name, lua_type(std::get<I>(kFields).member), std::get<I>(kFields).help,
       [](Call& call) { return call.push(metrics(call).*std::get<I>(StepMetrics::fields()).member); }}...};
}

Json score_json(const EvalScore& score) {
  Json json = {
      {"loss", score.loss}, {"perplexity", score.perplexity}, {"tokens", score.tokens}, {"step", score.step}};
  if (score.bits_per_byte) json["bits_per_byte"] = *score.bits_per_byte;
  return json;
}

Json record_json(const EvalRecord& record) {
  Json json = score_json(record.last);
  json["best"] = score_json(record.best);
  return json;
}

bool has_eval(Call& call) {
  const EvalRecords* eval = context(call).info->eval;
  return eval != nullptr && eval->total;
}

int eval(Call& call) {
  if (!has_eval(call))
    throw ScriptError("E_CONTEXT", "ctx.eval: no evaluation has run yet", "check ctx.has_eval first");
  const EvalRecords& records = *context(call).info->eval;
  Json all = record_json(*records.total);
  for (const auto& [name, record] : records.sets) all[name] = record_json(record);
  return call.push(all);
}

template <const Class& (*object)()>
int of_session(Call& call) {
  return call.push_object(object(), context(call).session);
}

int of_call(Call& call, const Class& object) {
  return call.push_object(object, context(call).shared_from_this());
}

/// Reads members that only some events or kinds have: tag, path, reason.
int fact(Call& call) {
  const std::string key = call.text(1);
  if (key == "cmd")
    throw ScriptError("E_CONTEXT", "ctx.cmd: only a t.control callback can issue commands",
                      "write t.control { ... }, or kind = \"control\" in t.component");
  if (key == "dist")
    throw ScriptError("E_CONTEXT", "ctx.dist: only a t.everywhere callback runs on all ranks",
                      "write t.everywhere { ... }, or kind = \"everywhere\" in t.component");
  const Json& facts = context(call).info->facts;
  return facts.contains(key) ? call.push(facts.at(key)) : call.push_nil();
}

std::vector<Field> values_of_ctx() {
  std::vector<Field> fields =
      metric_fields(std::make_index_sequence<std::tuple_size_v<decltype(StepMetrics::fields())>>());
  const std::vector<Field> more = {
      {"event", "string", "Name of the event.",
       [](Call& c) { return c.push(enum_name(context(c).info->event)); }},
      {"total_steps", "integer", "Steps of the whole run.",
       [](Call& c) { return c.push(run_info(c).total_steps); }},
      {"frac", "number", "step / total_steps.",
       [](Call& c) {
         return c.push(static_cast<double>(metrics(c).step) / static_cast<double>(run_info(c).total_steps));
       }},
      {"samples_per_s", "number", "Over the last steps.",
       [](Call& c) {
         const StepMetrics& m = metrics(c);
         return c.push(m.tokens > 0
                           ? m.tokens_per_s * static_cast<double>(m.samples) / static_cast<double>(m.tokens)
                           : 0.0);
       }},
      {"step_ms", "number", "Wall time of the newest step, in ms.",
       [](Call& c) { return c.push(1e3 * metrics(c).step_s); }},
      {"has_eval", "boolean", "True after the first evaluation.",
       [](Call& c) { return c.push(has_eval(c)); }},
      {"eval", "table",
       "Of the newest evaluation: loss, perplexity, bits_per_byte, tokens, step over all sets, the best one "
       "as eval.best; each set as eval.NAME.",
       eval},
      {"run_name", "string", "Name of the run.", [](Call& c) { return c.push(run_info(c).run_name); }},
      {"run_dir", "string", "Folder of the run.", [](Call& c) { return c.push(run_info(c).run_dir); }}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

Class ctx_of(const char* name, const char* doc, const std::vector<Field>& more) {
  std::vector<Field> fields = values_of_ctx();
  const std::vector<Field> objects = {
      {"model", "tycho.run.Model", "The model; its parameters can be read.", of_session<&model_class>},
      {"opt", "tycho.run.Opt", "The optimizer.", of_session<&opt_class>},
      {"sched", "tycho.run.Sched", "The schedule.", of_session<&sched_class>},
      {"data", "tycho.run.Data", "The training data.", of_session<&data_class>},
      {"ckpt", "tycho.run.Ckpt", "The checkpoints.", of_session<&ckpt_class>},
      {"log", "tycho.run.Log", "The run's record.", of_session<&log_class>},
      {"mem", "tycho.run.Mem", "Memory.", of_session<&mem_class>},
      {"profile", "tycho.run.Profile", "The profiler.", of_session<&profile_class>}};
  fields.insert(fields.end(), objects.begin(), objects.end());
  fields.insert(fields.end(), more.begin(), more.end());
  return {.name = name, .doc = doc, .fields = std::move(fields), .methods = {}, .index = fact};
}

/// Returns a schedule of the recipe at a stack index as plain data.
Json schedule_at(lua_State* L, int index) {
  lua_getglobal(L, "require");
  lua_pushstring(L, "tycho.running");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "schedule_tree");
  lua_pushvalue(L, index);
  lua_call(L, 1, 1);
  return read_json(L, -1);
}

/// The function behind cmd.scale_lr(0.5, { for_next = "200ba" }). Upvalues: the cmd object, the name, the
/// queue.
int command(lua_State* L) {
  return protect(L, [&] {
    const std::string name = lua_tostring(L, lua_upvalueindex(2));
    if (Objects::class_of(L, 1) == &cmd_class())
      throw ScriptError("E_ARGUMENT", fmt::format("cmd:{0} must be written with a dot: cmd.{0}(...)", name));
    const int num_args = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_gettable(L, lua_upvalueindex(1));  // E_EXPIRED when the call is over
    Json values = Json::array(), named;
    for (int i = 1; i <= num_args; ++i) {
      const bool schedule = name == "set_schedule" && !lua_isnil(L, i);
      Json value = schedule ? schedule_at(L, i) : read_json(L, i);
      if (i == 2 && value.is_object())
        named = std::move(value);
      else
        values.push_back(std::move(value));
    }
    static_cast<CommandQueue*>(lua_touserdata(L, lua_upvalueindex(3)))
        ->add(make_command(name, values, named, ""));
    return 0;
  });
}

int push_command(Call& call) {
  lua_pushvalue(call.L, 1);
  lua_pushvalue(call.L, 2);
  lua_pushlightuserdata(call.L, &call.self<CommandQueue>());
  lua_pushcclosure(call.L, command, 3);
  return 1;
}

/// A value of the recipe as numbers, and its form: a number, or a list or table of numbers.
struct Numbers {
  Json form;
  std::vector<double> values;
};

void flatten(const Json& json, std::vector<double>& values) {
  if (json.is_structured()) {
    for (const auto& item : json) flatten(item, values);
  } else if (json.is_number()) {
    values.push_back(json.get<double>());
  } else {
    throw ScriptError("E_ARGUMENT", "dist expects numbers, tables of them, or tensors, got " + json.dump());
  }
}

Json rebuild(const Json& form, const double*& next) {
  if (!form.is_structured()) return *next++;
  Json out = form;
  for (auto& item : out) item = rebuild(item, next);
  return out;
}

// Names come in the same order on every rank: read_json sorts them.
Numbers first_argument(Call& call) {
  if (Objects::class_of(call.L, 2) == &tensor_class()) {
    lua_getfield(call.L, 2, "tolist");
    lua_pushvalue(call.L, 2);
    lua_call(call.L, 1, 1);
    lua_replace(call.L, 2);
  }
  Numbers numbers{.form = read_json(call.L, 2), .values = {}};
  flatten(numbers.form, numbers.values);
  return numbers;
}

std::vector<std::vector<double>> from_all(Call& call, const Numbers& mine) {
  luaL_where(call.L, 1);
  std::string place = lua_tostring(call.L, -1);
  lua_pop(call.L, 1);
  return context(call).port->dist->gather(mine.values, place.substr(0, place.rfind(':')));
}

using Together = double (*)(double, double);

int reduce(Call& call, Together together, bool mean) {
  const Numbers mine = first_argument(call);
  const auto all = from_all(call, mine);
  std::vector<double> result = all[0];
  for (size_t r = 1; r < all.size(); ++r)
    for (size_t i = 0; i < result.size(); ++i) result[i] = together(result[i], all[r][i]);
  if (mean)
    for (double& x : result) x /= static_cast<double>(all.size());
  const double* next = result.data();
  return call.push(rebuild(mine.form, next));
}

double add(double a, double b) { return a + b; }
// NaN on any rank is the result, whatever the order of ranks.
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }
double smaller(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }

int gather(Call& call) {
  const Numbers mine = first_argument(call);
  Json by_rank = Json::array();
  for (const std::vector<double>& values : from_all(call, mine)) {
    const double* next = values.data();
    by_rank.push_back(rebuild(mine.form, next));
  }
  return call.push(by_rank);
}

int broadcast(Call& call) {
  const Numbers mine = first_argument(call);
  const auto all = from_all(call, mine);
  const auto root = static_cast<size_t>(call.integer(2, 0));
  if (root >= all.size())
    throw ScriptError("E_ARGUMENT",
                      fmt::format("dist:broadcast: there is no rank {} among {}", root, all.size()));
  const double* next = all[root].data();
  return call.push(rebuild(mine.form, next));
}

}  // namespace

const Class& observe_ctx_class() {
  static const Class object = ctx_of("observe_ctx", "What a t.observe callback is called with.", {});
  return object;
}

const Class& control_ctx_class() {
  static const Class object =
      ctx_of("control_ctx", "What a t.control callback is called with.",
             {{"cmd", "tycho.run.Cmd", "Commands, which every rank applies at the next step boundary.",
               [](Call& c) { return c.push_object(cmd_class(), context(c).commands); }}});
  return object;
}

const Class& everywhere_ctx_class() {
  static const Class object = ctx_of("everywhere_ctx", "What a t.everywhere callback is called with.",
                                     {{"dist", "tycho.run.Dist", "Reductions over all ranks.",
                                       [](Call& c) { return of_call(c, dist_class()); }}});
  return object;
}

const Class& cmd_class() {
  static const Class object = [] {
    Class made = {.name = "cmd", .doc = "Commands for the next step boundary, with a dot: cmd.set_lr(3e-4)."};
    for (const CommandSpec& spec : all_commands())
      made.fields.push_back({spec.name, "fun(...)", spec.help, push_command});
    return made;
  }();
  return object;
}

const Class& dist_class() {
  using Kind = Arg::Kind;
  const Arg value = {"value", Kind::kAny, "A number, a table of numbers, or a tensor."};
  static const Class object = {
      .name = "dist",
      .doc = "Reductions over all ranks; every rank must make the same calls.",
      .fields = {{"rank", "integer", "Rank of this process, from 0.",
                  [](Call& c) { return c.push(int64_t{context(c).port->dist->rank()}); }},
                 {"world", "integer", "Number of ranks.",
                  [](Call& c) { return c.push(int64_t{context(c).port->dist->size()}); }}},
      .methods = {
          {"sum", "any", "Over all ranks.", {value}, [](Call& c) { return reduce(c, add, false); }},
          {"mean", "any", "Over all ranks.", {value}, [](Call& c) { return reduce(c, add, true); }},
          {"max", "any", "Over all ranks.", {value}, [](Call& c) { return reduce(c, larger, false); }},
          {"min", "any", "Over all ranks.", {value}, [](Call& c) { return reduce(c, smaller, false); }},
          {"gather", "any[]", "The value of every rank, by rank.", {value}, gather},
          {"broadcast",
           "any",
           "The value of one rank.",
           {value, {"rank", Kind::kInteger, "Default 0.", true, 0}},
           broadcast}}};
  return object;
}

std::vector<std::string> ctx_values() {
  std::vector<std::string> names;
  for (const Field& field : values_of_ctx())
    if (const std::string type = field.type; type != "table" && type != "boolean")
      names.push_back(field.name);
  return names;
}

const std::vector<const Class*>& callback_classes() {
  static const std::vector<const Class*> classes = {&observe_ctx_class(), &control_ctx_class(),
                                                    &everywhere_ctx_class(), &cmd_class(), &dist_class()};
  return classes;
}

}  // namespace tycho
