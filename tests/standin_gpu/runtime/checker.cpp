// Numbers streams and threads, and tells the checker what they do, one after the other.
#include "tests/standin_gpu/runtime/checker.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "tests/standin_gpu/runtime/state.h"

namespace standin {
namespace {

constexpr int kExitCode = 97;
constexpr long kFirstMark = 1L << 40;  // behind the numbers of events
std::atomic<bool> any_enqueued = false;

/// TYCHO_STANDIN_MUTANT: wait, record or done, then :STEP:NUMBER.
Mutant asked_mutant() {
  const char* text = std::getenv("TYCHO_STANDIN_MUTANT");
  if (text == nullptr) return {};
  char kind[16] = "";
  Mutant mutant;
  const bool is_whole = std::sscanf(text, "%15[a-z]:%ld:%ld", kind, &mutant.step, &mutant.number) == 3;
  const std::string name = kind;
  mutant.kind = name == "wait"     ? Mutant::Kind::kNoWait
                : name == "record" ? Mutant::Kind::kEarlyRecord
                : name == "done"   ? Mutant::Kind::kEarlyDone
                                   : Mutant::Kind::kNone;
  if (is_whole && mutant.kind != Mutant::Kind::kNone) return mutant;
  std::fprintf(stderr, "[standin] TYCHO_STANDIN_MUTANT: expected wait|record|done:STEP:NUMBER, got %s\n",
               text);
  std::abort();
}

struct Checker {
  std::mutex mutex;
  Order order = Order(asked_mutant());
  std::map<std::pair<int, cudaStream_t>, int> streams;
  long num_queries = 0;
  int num_actors = 0;
  std::FILE* trace = nullptr;

  Checker() {
    if (const char* path = std::getenv("TYCHO_STANDIN_TRACE"))
      trace = std::fopen((std::string(path) + "." + rank_of_process()).c_str(), "w");
  }

  /// Holding the mutex, as below.
  int stream_number(cudaStream_t stream) {
    const auto [at, is_new] = streams.try_emplace({device_of(stream), stream}, num_actors);
    if (is_new) ++num_actors;
    return at->second;
  }

  void apply(Action action) {
    if (trace != nullptr) std::fprintf(trace, "%s\n", line_of(action).c_str());
    const std::optional<std::string> wrong = order.apply(action);
    if (!wrong) return;
    std::fprintf(stderr, "[standin] %s\n", wrong->c_str());
    if (trace != nullptr) std::fflush(trace);
    std::fflush(stderr);
    _exit(kExitCode);
  }
};

Checker& checker() {
  static Checker* const all = new Checker;  // never freed: threads may outlive statics
  return *all;
}

thread_local int own_number = -1;
thread_local long begun_at = 0;  // mark of the thread's start
thread_local std::vector<std::string> names;

int thread_number(Checker& all) {
  if (own_number >= 0) return own_number;
  own_number = all.num_actors++;
  if (begun_at != 0) all.apply({.kind = Action::Kind::kTakeOver, .thread = own_number, .event = begun_at});
  return own_number;
}

std::string with_place(const std::string& name) {
  std::string text = name;
  for (size_t i = names.size(); i > 0; --i) text += (i == names.size() ? " of " : ", ") + names[i - 1];
  return text;
}

/// Tells the checker of an action of this thread. `fill` sets the rest of it, holding the mutex.
template <class Fill>
void tell(Action::Kind kind, const Fill& fill) {
  if (!checks()) return;
  Checker& all = checker();
  const std::lock_guard lock(all.mutex);
  Action action = {.kind = kind, .thread = thread_number(all)};
  fill(all, action);
  all.apply(std::move(action));
}

void add(std::vector<Bytes>& list, const void* begin, size_t bytes) {
  if (bytes == 0 || begin == nullptr || owner_of(begin).place == Place::kUnknown) return;
  const auto from = reinterpret_cast<uintptr_t>(begin);
  if (!list.empty() && list.back().end == from)
    list.back().end += bytes;
  else
    list.push_back({from, from + bytes});
}

// Tests read how much was ordered: streams in use, pairs of two of them, pairs of a stream and the host.
struct TellAtExit {
  ~TellAtExit() {
    Checker& all = checker();
    const std::lock_guard lock(all.mutex);
    if (all.trace != nullptr) std::fflush(all.trace);
    const char* path = std::getenv("TYCHO_STANDIN_PAIRS");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    std::fprintf(file, "%zu %ld %ld\n", all.streams.size(), all.order.num_stream_pairs(),
                 all.order.num_host_pairs());
    std::fclose(file);
  }
};

}  // namespace

bool checks() {
  static const bool on = [] {
    const char* asked = std::getenv("TYCHO_STANDIN_ORDER");
    return (asked == nullptr || std::strcmp(asked, "off") != 0) &&
           std::getenv("TYCHO_STANDIN_RECORD") == nullptr;
  }();
  return on;
}

Uses& Uses::read(const void* begin, size_t bytes) {
  add(reads, begin, bytes);
  return *this;
}
Uses& Uses::write(const void* begin, size_t bytes) {
  add(writes, begin, bytes);
  return *this;
}

void enqueued(const std::string& name, cudaStream_t stream, const Uses& uses) {
  if (checks()) {
    static const TellAtExit tell_at_exit;
    any_enqueued = true;
  }
  tell(Action::Kind::kEnqueue, [&](Checker& all, Action& action) {
    action.stream = all.stream_number(stream);
    action.name = with_place(name);
    action.reads = uses.reads, action.writes = uses.writes;
  });
}

void used_by_host(const std::string& name, const Uses& uses) {
  if (uses.reads.empty() && uses.writes.empty()) return;
  tell(Action::Kind::kHost, [&](Checker&, Action& action) {
    action.name = with_place(name);
    action.reads = uses.reads, action.writes = uses.writes;
  });
}

void freed(const void* begin, size_t bytes) {
  tell(Action::Kind::kFree, [&](Checker&, Action& action) {
    const auto from = reinterpret_cast<uintptr_t>(begin);
    action.writes = {{from, from + bytes}};
  });
}

void recorded(long event, cudaStream_t stream) {
  tell(Action::Kind::kRecord, [&](Checker& all, Action& action) {
    action.event = event, action.stream = all.stream_number(stream);
    action.name = with_place("an event");
  });
}

void stream_waits(const char* name, cudaStream_t stream, long event) {
  tell(Action::Kind::kStreamWait, [&](Checker& all, Action& action) {
    action.event = event, action.stream = all.stream_number(stream);
    action.name = with_place(name);
  });
}

void host_waits_for_event(const char* name, long event) {
  tell(Action::Kind::kEventWait, [&](Checker&, Action& action) {
    action.event = event;
    action.name = with_place(name);
  });
}

void host_waits_for_stream(const char* name, cudaStream_t stream) {
  tell(Action::Kind::kActorWait, [&](Checker& all, Action& action) {
    action.stream = all.stream_number(stream);
    action.name = with_place(name);
  });
}

void host_waits_for_device(const char* name) {
  tell(Action::Kind::kActorWait, [&](Checker&, Action& action) { action.name = with_place(name); });
}

bool is_told_done(long event, cudaStream_t stream) {
  if (!checks()) return true;
  Checker& all = checker();
  const std::lock_guard lock(all.mutex);
  const int number = event < 0 ? all.stream_number(stream) : -1;
  if (!all.order.is_done(event, number)) return all.order.is_told_early();
  all.apply({.kind = Action::Kind::kDone, .thread = thread_number(all), .stream = number, .event = event});
  return true;
}

void ended_event(long event) {
  tell(Action::Kind::kEndEvent, [&](Checker&, Action& action) { action.event = event; });
}

bool is_in_use() { return any_enqueued; }

void handed_over(long mark) {
  tell(Action::Kind::kHandOver, [&](Checker&, Action& action) { action.event = kFirstMark + mark; });
}
void took_over(long mark) {
  tell(Action::Kind::kTakeOver, [&](Checker&, Action& action) { action.event = kFirstMark + mark; });
}

void begun(long mark) { begun_at = kFirstMark + mark; }
void ends(long mark) {
  if (own_number >= 0) handed_over(mark);
}

void enter(const std::string& name) { names.push_back(name); }
void leave() {
  const std::string name = std::move(names.back());
  names.pop_back();
  if (name == "optimizer") tell(Action::Kind::kStep, [](Checker&, Action&) {});
}

}  // namespace standin
