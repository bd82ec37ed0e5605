// Ranks exchange JSON texts; a mark in their store passes Ctrl-C on.
#include "host/repl/in_step.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "bindings/define/lua_util.h"
#include "trainer/rendezvous/endpoint.h"
#include "trainer/rendezvous/handed_listener.h"

namespace tycho {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);  // between looks for Ctrl-C
constexpr const char* kPeer = "E_PEER";

Json json_of(const EntryEnd& end) {
  return {{"status", end.status}, {"exit", end.exit},     {"failure", end.failure},
          {"shown", end.shown},   {"output", end.output}, {"is_echo", end.is_echo}};
}

EntryEnd end_of(const Json& json) {
  return {.status = json.at("status"),
          .exit = json.at("exit"),
          .failure = json.at("failure"),
          .shown = json.at("shown"),
          .output = json.at("output"),
          .is_echo = json.at("is_echo")};
}

/// Returns true when the mark is set, and when rank 0, which keeps the marks, has gone: the entry must then
/// end too.
bool is_marked(RankGroup& group, const std::string& name) {
  try {
    return group.is_marked(name);
  } catch (const std::exception&) {
    return true;
  }
}

/// Returns true when a rank's message is {"end": ...}; otherwise it is {"call": ...}.
bool has_ended(const Json& said) { return said.contains("end"); }

}  // namespace

InStep::Relay::Relay(RankGroup& group, int64_t entry, bool sends, const StopFlag& stop)
    : thread_([this, &group, name = fmt::format("interrupt {}", entry), sends, &stop,
               main = pthread_self()](const std::stop_token& over) {
        std::unique_lock lock(mutex_);
        while (!ended_.wait_for(lock, over, kLook, [&] { return over.stop_requested(); })) {
          if (sends ? stop == 0 : !is_marked(group, name)) continue;
          if (sends) return group.mark(name);
          pthread_kill(main, SIGINT);
          return;
        }
      }) {}

InStep::InStep(const EngineApi& engine, const RankInfo& place, double patience_s, const StopFlag& stop)
    : place_(place), group_(engine.meet(place, patience_s, stop)) {}

std::vector<Json> InStep::gather(const Json& mine) {
  std::vector<Json> all;
  for (const std::string& text : group_->gather(mine.dump(-1, ' ', false, Json::error_handler_t::replace)))
    all.push_back(parse_json(text, "another rank"));
  return all;
}

Json InStep::hear(const Json& mine) { return gather(mine).front(); }

int InStep::together(const std::function<void()>& part) {
  Json failure = nullptr;
  std::exception_ptr own;
  try {
    part();
  } catch (const Error& error) {
    own = std::current_exception();
    failure = {{"text", error.what()}, {"exit", static_cast<int>(error.code())}};
  }
  const std::vector<Json> all = gather(failure);
  if (own && rank() == 0) std::rethrow_exception(own);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r].is_null()) continue;
    const int exit = all[r].at("exit");
    if (rank() != 0) return exit;
    fail(static_cast<ExitCode>(exit), "rank {}: {}", r, all[r].at("text").get<std::string>());
  }
  return 0;
}

void InStep::begin(std::optional<int> alone, const StopFlag& stop) {
  alone_ = alone.has_value();
  is_echo_ = false;
  relay_ = std::make_unique<Relay>(*group_, ++entries_, rank() == 0, stop);
}

void InStep::refuse_alone(const std::string& what) const {
  if (!alone_) return;
  throw ScriptError("E_USAGE",
                    fmt::format("{} needs all ranks, but only rank {} runs this entry", what, rank()),
                    "without @ the entry runs on all of them");
}

void InStep::lose() {
  relay_.reset();
  lost_ = true;
  alone_ = false;
}

std::string InStep::call(const std::string& what, const std::string& said) {
  refuse_alone(what);
  if (lost_)
    throw ScriptError(kPeer, fmt::format("{} needs all ranks, but some have ended", what), "",
                      ExitCode::kTerminated);
  const std::vector<Json> all = gather({{"call", what}, {"said", said}});
  for (size_t r = 0; r < all.size(); ++r) {
    if (!has_ended(all[r])) continue;
    is_echo_ = end_of(all[r].at("end")).status == "error";
    throw ScriptError(kPeer,
                      fmt::format("{} needs all ranks, but rank {} has {} this entry", what, r,
                                  is_echo_ ? "failed in" : "ended"),
                      "", ExitCode::kTopology);
  }
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r].at("call") != all[0].at("call"))
      throw ScriptError(
          kPeer,
          fmt::format("rank 0 calls {}, rank {} calls {}: all ranks must make the same call",
                      all[0].at("call").get<std::string>(), r, all[r].at("call").get<std::string>()),
          "", ExitCode::kTopology);
  return all[0].at("said");
}

RankInfo InStep::meeting_place(const std::string& what) {
  RankInfo place = place_;
  place.port = 0;  // any
  place.listener = -1;
  Socket listener;
  if (rank() == 0) {
    listener = listen_at(rendezvous_endpoint(place, process_environment()));
    place.port = local_end(listener.fd()).port();
  }
  place.port = std::stoi(call(what, std::to_string(place.port)));
  if (listener.is_open()) place.listener = hand_over(std::move(listener));
  place.job += fmt::format("/run {}", ++runs_);
  return place;
}

std::vector<EntryEnd> InStep::end(EntryEnd mine) {
  mine.is_echo = is_echo_;
  for (;;) {  // ranks that still call see that nobody answers, and end up here too
    const std::vector<Json> all = gather({{"end", json_of(mine)}});
    if (!std::all_of(all.begin(), all.end(), has_ended)) continue;
    relay_.reset();
    alone_ = false;
    std::vector<EntryEnd> ends;
    for (const Json& one : all) ends.push_back(end_of(one.at("end")));
    return ends;
  }
}

}  // namespace tycho
