// The Lua objects `log` and `mem`.
#include "bindings/run/session_objects.h"
#include "trainer/base/bytes.h"
#include "trainer/base/secrets.h"
#include "trainer/base/text/json_number.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/gpu_use.h"
#include "trainer/metrics/machine_use.h"

namespace tycho {
namespace {

/// Adds an event with the step that it belongs to. Masks secrets here, because the engine does not know those
/// that a callback reads.
int note(Call& call, const std::string& kind, const std::string& text, Json facts) {
  if (!call.self<SessionRef>().keeps_record) return 0;
  facts["step"] = session(call).state().recorded_step;
  session(call).event(kind, without_secrets(text), json_without_secrets(std::move(facts)));
  return 0;
}

/// Returns a field for display: numbers short, texts quoted where needed, the rest as JSON.
std::string field_text(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  if (value.is_number()) return metric_text(value.get<double>());
  return value.is_string() ? quoted_value(value.get<std::string>()) : value.dump();
}

/// Returns "loss spike  loss=8.1 mean=3.2".
std::string with_fields(std::string text, const Json& fields) {
  const char* between = "  ";
  for (const auto& [name, value] : fields.items()) {
    text += fmt::format("{}{}={}", between, name, field_text(value));
    between = " ";
  }
  return text;
}

int message(Call& call, const char* kind) {
  Json facts = call.has(2) ? call.data(2) : Json::object();
  if (!facts.is_object())
    throw ScriptError("E_ARGUMENT", fmt::format("log:{}: fields expects names and values", kind));
  const std::string text = with_fields(call.text(1), facts);
  return note(call, kind, text, std::move(facts));
}

int metric(Call& call) {
  for (const char* taken : {"step", "attempt", "time", kNotFinite})
    if (call.text(1) == taken)
      throw ScriptError("E_ARGUMENT",
                        fmt::format("log:metric: every record already has {}; choose another name", taken));
  if (call.self<SessionRef>().keeps_record)
    session(call).metric(without_secrets(call.text(1)), call.number(2));
  return 0;
}

int note_text(Call& call) {
  return note(call, "text", call.text(1) + ": " + call.text(2),
              {{"name", call.text(1)}, {"text", call.text(2)}});
}

int note_alert(Call& call) {
  return note(call, "alert", call.text(1) + ": " + call.text(2),
              {{"title", call.text(1)}, {"text", call.text(2)}});
}

int note_table(Call& call) {
  return note(call, "table", call.text(1), {{"name", call.text(1)}, {"table", call.data(2)}});
}

int note_histogram(Call& call) {
  if (Objects::class_of(call.L, 3) != &tensor_class())
    throw ScriptError("E_ARGUMENT", "log:histogram: tensor expects a tensor");
  lua_getfield(call.L, 3, "histogram");
  lua_pushvalue(call.L, 3);
  lua_pushinteger(call.L, static_cast<lua_Integer>(call.integer(3, 13)));
  lua_call(call.L, 2, 1);
  Json facts = {{"name", call.text(1)}};
  for (const char* key : {"low", "high", "counts"}) {
    lua_getfield(call.L, -1, key);
    facts[key] = read_json(call.L, lua_gettop(call.L));
    lua_pop(call.L, 1);
  }
  return note(call, "histogram", call.text(1), std::move(facts));
}

int lua_bytes(Call& call) {
  return call.push(int64_t{lua_gc(call.L, LUA_GCCOUNT, 0)} * 1024 + lua_gc(call.L, LUA_GCCOUNTB, 0));
}

int snapshot(Call& call) {
  const MemoryUse use = session(call).memory();
  return call.push(Json{{"allocated", use.allocated},
                        {"peak", use.peak},
                        {"total", use.total},
                        {"lua", int64_t{lua_gc(call.L, LUA_GCCOUNT, 0)} * 1024},
                        {"tensors", call.objects.external_bytes()}});
}

int machine(Call& call) {
  const MachineUse use = machine_use(session(call).facts().run.run_dir);
  Json gpus = Json::array();
  for (const GpuUse& gpu : gpu_use())
    gpus.push_back({{"busy_share", gpu.busy_share},
                    {"memory_used_bytes", gpu.memory_used_bytes},
                    {"memory_free_bytes", gpu.memory_free_bytes},
                    {"power_w", gpu.power_w},
                    {"temperature_c", gpu.temperature_c}});
  return call.push(Json{{"cpu_busy_s", use.cpu_busy_s},
                        {"cpu_s", use.cpu_s},
                        {"memory_used_bytes", use.memory_used_bytes},
                        {"memory_free_bytes", use.memory_free_bytes},
                        {"process_bytes", use.process_bytes},
                        {"disk_free_bytes", use.disk_free_bytes},
                        {"gpus", gpus}});
}

int collect(Call& call) {
  call.objects.collect(call.L);
  return call.push(call.objects.external_bytes());
}

int mem_text(Call& call) {
  const MemoryUse use = session(call).memory();
  const auto human = [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  return call.push(fmt::format("mem {} of {}  peak {}  lua {}  kept tensors {}", human(use.allocated),
                               human(use.total), human(use.peak),
                               human(int64_t{lua_gc(call.L, LUA_GCCOUNT, 0)} * 1024),
                               human(call.objects.external_bytes())));
}

}  // namespace

const Class& log_class() {
  using Kind = Arg::Kind;
  static const std::vector<Arg> kMessage = {
      {"message", Kind::kText, "", false},
      {"fields", Kind::kAny, "Names and values to record with it.", true}};
  static const Arg kName = {"name", Kind::kText, "Its name.", false};
  static const Class object = {
      .name = "log",
      .doc = "Adds to the record of the run: events.jsonl, log.txt and the display.",
      .fields = {},
      .methods = {
          {"metric",
           "",
           "Records a number of this step; NaN and math.huge are numbers, too.",
           {kName, {"value", Kind::kAnyNumber, "", false}},
           metric},
          {"info", "", "A message.", kMessage, [](Call& c) { return message(c, "info"); }},
          {"warn", "", "A warning.", kMessage, [](Call& c) { return message(c, "warning"); }},
          {"error", "", "An error that does not stop the run.", kMessage,
           [](Call& c) { return message(c, "error"); }},
          {"alert",
           "",
           "A message for people: t.cb.notify posts it, and t.log.wandb sends it as an alert.",
           {{"title", Kind::kText, "", false}, {"text", Kind::kText, "", false}},
           note_alert},
          {"text",
           "",
           "A text, such as a sample of the model.",
           {kName, {"text", Kind::kText, "", false}},
           note_text},
          {"table", "", "Data.", {kName, {"table", Kind::kAny, "Names and values.", false}}, note_table},
          {"histogram",
           "",
           "Counts of a tensor's numbers.",
           {kName,
            {"tensor", Kind::kAny, "", false},
            {"bins", Kind::kInteger, "Number of bins; default 13.", true, 1, 1000}},
           note_histogram}}};
  return object;
}

const Class& mem_class() {
  static const Class object = {
      .name = "mem",
      .doc = "Memory, in bytes.",
      .fields = {{"allocated", "integer", "On the training device.",
                  [](Call& c) { return c.push(session(c).memory().allocated); }},
                 {"peak", "integer", "Peak so far.",
                  [](Call& c) { return c.push(session(c).memory().peak); }},
                 {"total", "integer", "Total memory of the device; 0 if unknown.",
                  [](Call& c) { return c.push(session(c).memory().total); }},
                 {"lua", "integer", "Memory of Lua itself.", lua_bytes},
                 {"tensors", "integer", "Memory of tensors that Lua keeps.",
                  [](Call& c) { return c.push(c.objects.external_bytes()); }}},
      .methods = {{"snapshot", "table", "All of these as a table.", {}, snapshot},
                  {"machine",
                   "table",
                   "Of this machine: cpu_busy_s and cpu_s (seconds of all processors since it started), "
                   "memory_used_bytes, memory_free_bytes, process_bytes, disk_free_bytes for the run folder, "
                   "and gpus: a "
                   "list of busy_share, memory_used_bytes, memory_free_bytes, power_w, temperature_c. -1: "
                   "not known.",
                   {},
                   machine},
                  {"collect",
                   "integer",
                   "Collects Lua's garbage; returns the bytes of the remaining tensors.",
                   {},
                   collect}},
      .text = mem_text};
  return object;
}

}  // namespace tycho
