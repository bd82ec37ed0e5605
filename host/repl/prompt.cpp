// One prompt: connects Lua, the engine and the other ranks.
#include "host/repl/prompt.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "bindings/define/native.h"
#include "bindings/define/watch.h"
#include "bindings/run/drawing.h"
#include "host/engine.h"
#include "host/repl/session_in_step.h"
#include "host/start/choose_mesh.h"
#include "host/start/start_run.h"
#include "trainer/hub/hub_pins.h"
#include "trainer/metrics/format.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {
namespace {

constexpr LuaLimits kNoLimits = {
    .max_instructions = int64_t{1} << 62, .max_seconds = 1e18, .max_bytes = kPromptBytes, .exit_s = kNever_s};

// An exception that escapes the REPL is a bug of its own.
constexpr bool kTrace = true;

constexpr const char* kRepl = "tycho.repl";
constexpr size_t kMaxBrief = 60;         // bytes of another rank's value that are shown
constexpr size_t kMaxDiffering = 3;      // ranks whose values are
constexpr size_t kMaxPrinted = 4 << 20;  // bytes that another rank prints

/// An entry like "@1 mem.allocated": the rank, and the text that it alone evaluates.
struct AddressedEntry {
  std::optional<int> rank;
  std::string text;
};

AddressedEntry read_address(const std::string& text) {
  const size_t at = text.find_first_not_of(" \t\n");
  if (at == std::string::npos || text[at] != '@') return {std::nullopt, text};
  size_t end = at + 1;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const bool is_number = end > at + 1 && end < at + 8;
  return {is_number ? std::stoi(text.substr(at + 1)) : -1, text.substr(end)};
}

std::string brief(const std::string& text) {
  if (text.empty()) return "nothing";
  std::string line = text.substr(0, text.find('\n'));
  bool is_cut = line.size() < text.size();
  if (line.size() > kMaxBrief) {
    size_t end = kMaxBrief;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0u) == 0x80u) --end;  // inside a character
    line.resize(end);
    is_cut = true;
  }
  return line + (is_cut ? " ..." : "");
}

}  // namespace

Prompt::Prompt(const ReplOptions& options, PromptSeat seat)
    : options_(options),
      seat_(std::move(seat)),
      interrupts_(seat_.prompting),
      history_(seat_.interactive && reads() && options.keep_history ? history_path() : ""),
      output_([this](std::string_view text) { write(text); }, seat_.redraws),
      host_{objects_,
            history_,
            output_,
            reads(),
            seat_.apart,
            [this](const Json& resolved) { return open(resolved); },
            [this](bool mine) { return seat_.ranks == nullptr ? mine : seat_.ranks->decide(":bench", mine); },
            [this] { return newest_callbacks_ != nullptr ? newest_callbacks_->take_failure() : Json(); }} {
  lua_State* L = state_.get();
  objects_.attach(L);
  open_library(L);
  open_drawing(L);
  open_repl_host(L, host_);
}

// What other ranks print is kept for who asks for it: @1 print(x).
void Prompt::write(std::string_view text) {
  if (reads()) return seat_.sink(text);
  const std::string_view kept = text.substr(0, kMaxPrinted - std::min(kMaxPrinted, printed_.size()));
  printed_.append(kept);
  num_dropped_ += text.size() - kept.size();
}

std::string Prompt::take_printed() {
  if (num_dropped_ > 0) {
    const size_t end = printed_.find_last_of('\n') + 1;  // 0: the output is one line of this length
    size_t at = end > 0 ? end : printed_.size() - 1;
    while (end == 0 && at > 0 && (static_cast<unsigned char>(printed_[at]) & 0xC0u) == 0x80u) --at;
    const size_t num_left_out = num_dropped_ + printed_.size() - at;
    printed_.resize(at);
    printed_ += fmt::format("{}... {} more bytes are not shown\n", end > 0 ? "" : "\n", num_left_out);
  }
  num_dropped_ = 0;
  return std::exchange(printed_, "");
}

Prompt::Start Prompt::start() {
  Start start;
  const auto read_recipe = [&] {
    lua_State* L = state_.get();
    const LuaWatch watch(L, kNoLimits);
    lua_getglobal(L, "require");
    lua_pushstring(L, "tycho.repl");
    call_lua(L, 1, 1);
    lua_getfield(L, -1, "new");
    push_json(L, request());
    call_lua(L, 1, 3, kTrace);
    start.text = lua_tostring(L, -2);
    start.is_whole = lua_toboolean(L, -1) != 0;
    if (!seat_.mends_recipe && !start.is_whole) {
      start.text.erase(start.text.find_last_not_of('\n') + 1);  // main ends the line
      throw Error(start.text, ExitCode::kRecipe);
    }
    lua_pop(L, 2);
    lua_setfield(L, LUA_REGISTRYINDEX, kRepl);
  };
  if (seat_.ranks == nullptr) {
    read_recipe();
    return start;
  }
  // Rank 0 reads first: its commits of the hub hold for all ranks, whatever their caches say.
  for (const bool is_turn_of_rank_0 : {true, false}) {
    start.exit = seat_.ranks->together([&] {
      if (reads() == is_turn_of_rank_0) read_recipe();
    });
    if (start.exit != 0) break;
    if (is_turn_of_rank_0) pin_hub(seat_.ranks->hear(hub_pins()).get<HubPins>());
  }
  return start;
}

void Prompt::look_at(FailedRun failed) {
  lua_State* L = state_.get();
  const LuaWatch watch(L, kNoLimits);
  newest_callbacks_ = &failed.callbacks;
  if (seat_.ranks != nullptr) failed.session = keep_in_step(std::move(failed.session), *seat_.ranks);
  push_method("bind");
  host_.adopt(L, std::move(failed.session));
  call_lua(L, 2, 0, kTrace);
  push_method("look_at");
  lua_pushlstring(L, failed.message.data(), failed.message.size());
  call_lua(L, 2, 0, kTrace);
}

EntryEnd Prompt::enter(const std::string& text) {
  try {
    if (seat_.ranks != nullptr && !lost_ranks_) seat_.ranks->hear({{"entry", text}});
    EntryEnd end = evaluate_addressed(text);
    interrupts_.stop() = 0;
    return end;
  } catch (const Error& error) {
    if (seat_.ranks == nullptr || !seat_.mends_recipe || error.code() != ExitCode::kTerminated) throw;
    interrupts_.stop() = 0;
    lost_ranks_ = true;
    seat_.ranks->lose();
    return failed(
        fmt::format("{}\nThis prompt continues with rank 0 alone: inspect what remains, then leave\n",
                    error.what()),
        error.code());
  }
}

int Prompt::follow() {
  for (;;) {
    const Json said = seat_.ranks->hear();
    if (said.contains("leave")) return said.at("leave");
    evaluate_addressed(said.at("entry"));
  }
}

void Prompt::leave(int exit) {
  if (seat_.ranks != nullptr && !lost_ranks_) seat_.ranks->hear({{"leave", exit}});
}

EntryEnd Prompt::evaluate_addressed(const std::string& text) {
  InStep* ranks = lost_ranks_ ? nullptr : seat_.ranks;
  const int rank = ranks != nullptr ? ranks->rank() : 0, size = ranks != nullptr ? ranks->size() : 1;
  const AddressedEntry entry = read_address(text);
  if (entry.rank && (*entry.rank < 0 || *entry.rank >= size))
    return failed(fmt::format("@ needs a rank from 0 to {} and an entry:  @0 mem\n", size - 1),
                  ExitCode::kUsage);
  if (ranks == nullptr) return evaluate(entry.text);
  take_printed();
  interrupts_.stop() = 0;
  ranks->begin(entry.rank, interrupts_.stop());
  EntryEnd mine = entry.rank.value_or(rank) == rank ? evaluate(entry.text) : pass_over(text, entry.text);
  if (entry.rank) mine.output = take_printed();
  const std::vector<EntryEnd> ends = ranks->end(mine);
  mine.is_echo = ends[static_cast<size_t>(rank)].is_echo;
  if (rank != 0) return mine;
  return entry.rank ? of_one_rank(ends, *entry.rank) : compare(std::move(mine), ends);
}

EntryEnd Prompt::of_one_rank(const std::vector<EntryEnd>& ends, int rank) {
  EntryEnd its = ends[static_cast<size_t>(rank)];
  output_.print(its.output);  // "" for rank 0, which has printed it
  return its;
}

EntryEnd Prompt::compare(EntryEnd mine, const std::vector<EntryEnd>& ends) {
  const bool is_cause = mine.status == "error" && !mine.is_echo;
  for (size_t r = 1; r < ends.size() && !is_cause; ++r) {
    if (ends[r].status != "error" || ends[r].failure.empty() || ends[r].is_echo) continue;
    EntryEnd failure = failed(fmt::format("rank {}: {}", r, ends[r].failure), ExitCode(ends[r].exit));
    lua_State* L = state_.get();
    const LuaWatch watch(L, kNoLimits);
    push_method("failed_elsewhere");
    lua_pushlstring(L, failure.failure.data(), failure.failure.size());
    call_lua(L, 2, 0, kTrace);
    return failure;
  }
  if (mine.status != "ok") return mine;
  size_t differing = 0;
  for (size_t r = 1; r < ends.size(); ++r) {
    if (ends[r].shown == mine.shown) continue;
    if (++differing <= kMaxDiffering)
      output_.print(fmt::format("{} rank {}: {}\n", locale_is_utf8() ? "≠" : "!=", r, brief(ends[r].shown)));
  }
  if (differing > kMaxDiffering)
    output_.print(fmt::format("  and {} more ranks differ\n", differing - kMaxDiffering));
  return mine;
}

EntryEnd Prompt::failed(const std::string& text, ExitCode code) {
  if (!seat_.apart) output_.print(text);
  return {.status = "error", .exit = static_cast<int>(code), .failure = text};
}

EntryEnd Prompt::evaluate(const std::string& text) {
  lua_State* L = state_.get();
  EntryEnd end;
  {
    const LuaWatch watch(L, kNoLimits);
    push_method("entry");
    lua_pushlstring(L, text.data(), text.size());
    call_lua(L, 2, 3, kTrace);
  }
  const Json told = read_json(L, lua_gettop(L));
  end.status = lua_tostring(L, -3);
  end.exit = static_cast<int>(lua_tointeger(L, -2));
  lua_pop(L, 3);
  if (told.is_object()) {
    end.failure = told.value("failure", "");
    end.place = told.value("place", Json());
    end.value = told.value("value", "");
    end.shown = told.value("shown", "");
  }
  output_.clear();
  std::fflush(stdout);
  return end;
}

EntryEnd Prompt::pass_over(const std::string& addressed, const std::string& text) {
  lua_State* L = state_.get();
  const LuaWatch watch(L, kNoLimits);
  push_method("pass_over");
  lua_pushlstring(L, addressed.data(), addressed.size());
  lua_pushlstring(L, text.data(), text.size());
  call_lua(L, 3, 0, kTrace);
  return {};
}

Completions Prompt::complete(const std::string& line) {
  Completions found;
  lua_State* L = state_.get();
  const LuaWatch watch(L, kNoLimits);
  try {
    const std::string text = read_address(line).text;
    push_method("complete");
    lua_pushlstring(L, text.data(), text.size());
    call_lua(L, 2, 2, kTrace);
    if (lua_isstring(L, -1) != 0) found.hint = lua_tostring(L, -1);
    lua_pop(L, 1);
    found.words = read_json(L, lua_gettop(L)).get<std::vector<std::string>>();
    lua_pop(L, 1);
  } catch (const std::exception&) {  // tab on something odd offers nothing
    lua_settop(L, 0);
  }
  return found;
}

void Prompt::push_method(const char* name) {
  lua_State* L = state_.get();
  lua_getfield(L, LUA_REGISTRYINDEX, kRepl);
  lua_getfield(L, -1, name);
  lua_insert(L, -2);
}

Json Prompt::request() const {
  Json request = recipe_request_json(options_.recipe);
  request["interactive"] = seat_.interactive;
  request["num_ranks"] = options_.place.num_ranks;
  request["apart"] = seat_.apart && reads();
  return request;
}

// What may fail on one rank alone comes before the ranks meet.
std::unique_ptr<TrainingSession> Prompt::open(const Json& resolved) {
  ResolvedRecipe drafted = to_resolved(resolved, options_.recipe.origins);
  const RecipeRequest again = own_request(drafted);
  const ChosenRecipe chosen = choose_mesh(std::move(drafted), again, devices_of(options_.place));
  const ResolvedRecipe& recipe = chosen.recipe;
  if (!chosen.text.empty()) output_.print(chosen.text);
  RunRequest request = make_run_request(recipe, options_.recipe.pins, options_.argv);
  newest_callbacks_ = nullptr;
  std::erase_if(callbacks_, [](const auto& one) { return !one->has_session(); });
  if (!recipe.config.callbacks.empty() || recipe.config.scheduler.is<DynamicScheduleConfig>()) {
    callbacks_.push_back(std::make_unique<LuaCallbacks>(in_own_state(recipe)));
    request.callbacks = newest_callbacks_ = callbacks_.back().get();
  }
  const EngineApi& engine = open_engine(threads_of_rank(recipe.config.threads, options_.place));
  if (const std::string warning = folder_warning(recipe); !warning.empty()) output_.print(warning);
  auto reporter = make_repl_reporter(output_);
  if (seat_.ranks == nullptr) return engine.open(request, std::move(reporter), interrupts_.stop());
  request.place = seat_.ranks->meeting_place("build(r)");
  return keep_in_step(engine.open(request, std::move(reporter), interrupts_.stop()), *seat_.ranks);
}

}  // namespace tycho
