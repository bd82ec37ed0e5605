// What the stand-in for a GPU knows.
#include "tests/standin_gpu/runtime/state.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/standin_gpu/runtime/checker.h"
#include "tests/standin_gpu/runtime/record.h"

namespace standin {

std::string rank_of_process() {
  const char* rank = std::getenv("TYCHO_RANK");
  return rank == nullptr ? "0" : rank;
}

namespace {

struct Failure {
  std::string name;
  long at_call = 0;
  bool from_then_on = false;
  int code = 0;
};

struct Allocation {
  size_t bytes = 0;
  Place place = Place::kUnknown;
  int device = -1;
};

long number_of(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atol(text);
}

/// NAME[@RANK]:CALL[+]:CODE, separated by commas; those of other ranks are left out.
std::vector<Failure> read_failures() {
  std::vector<Failure> failures;
  const char* text = std::getenv("TYCHO_STANDIN_FAIL");
  std::string rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string one = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const size_t first = one.find(':'), second = one.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      std::fprintf(stderr, "[standin] TYCHO_STANDIN_FAIL: expected NAME[@RANK]:CALL[+]:CODE, got %s\n",
                   one.c_str());
      std::abort();
    }
    std::string name = one.substr(0, first);
    const size_t at = name.find('@');
    if (at != std::string::npos && name.substr(at + 1) != rank_of_process()) continue;
    failures.push_back({name.substr(0, at), std::atol(one.c_str() + first + 1), one[second - 1] == '+',
                        std::atoi(one.c_str() + second + 1)});
  }
  return failures;
}

struct State {
  std::mutex mutex;
  int num_devices = static_cast<int>(number_of("TYCHO_STANDIN_GPUS", 2));
  size_t device_bytes = static_cast<size_t>(number_of("TYCHO_STANDIN_MB", 1024)) << 20;
  std::vector<size_t> used = std::vector<size_t>(static_cast<size_t>(std::max(1, num_devices)), 0);
  std::map<uintptr_t, Allocation> allocations;
  std::set<int> contexts;
  std::map<std::string, long> calls;
  std::vector<Failure> failures = read_failures();
  cudaError_t broken = cudaSuccess;  // nothing works after it
};

State& state() {
  static State* const all = new State;  // never freed: LibTorch's own statics free memory at exit
  return *all;
}

// Tests read how often a run called what.
struct TellAtExit {
  ~TellAtExit() {
    const char* path = std::getenv("TYCHO_STANDIN_CALLS");
    if (path == nullptr || state().calls.empty()) return;  // a shell around the program has none to tell
    std::FILE* file = std::fopen((std::string(path) + "." + rank_of_process()).c_str(), "w");
    if (file == nullptr) return;
    const std::lock_guard lock(state().mutex);
    for (const auto& [name, count] : state().calls) std::fprintf(file, "%s %ld\n", name.c_str(), count);
    std::fclose(file);
  }
} tell_at_exit;

thread_local int chosen_device = 0;
thread_local cudaError_t newest_error = cudaSuccess;

bool lasts(int code) { return code >= 700 && code < 800; }

}  // namespace

int num_devices() { return state().num_devices; }
int driver_version() { return static_cast<int>(number_of("TYCHO_STANDIN_DRIVER", 13000)); }
int num_sms() { return static_cast<int>(number_of("TYCHO_STANDIN_SMS", 4)); }
int capability() { return static_cast<int>(number_of("TYCHO_STANDIN_CAPABILITY", 90)); }
size_t device_bytes() { return state().device_bytes; }
size_t free_bytes(int device) {
  const std::lock_guard lock(state().mutex);
  return state().device_bytes - state().used.at(static_cast<size_t>(device));
}

int current_device() { return chosen_device; }
void set_current_device(int device) {
  chosen_device = device;
  const std::lock_guard lock(state().mutex);
  state().contexts.insert(device);
}
bool has_context(int device) {
  const std::lock_guard lock(state().mutex);
  return state().contexts.contains(device);
}

int device_of(cudaStream_t stream) {
  if (reinterpret_cast<uintptr_t>(stream) <= 2) return chosen_device;
  return reinterpret_cast<Stream*>(stream)->device;
}

cudaError_t called(const char* name) {
  State& all = state();
  int code = 0;
  {
    const std::lock_guard lock(all.mutex);
    if (all.broken != cudaSuccess) return newest_error = all.broken;
    const long call = ++all.calls[name];
    for (const Failure& failure : all.failures)
      if (failure.name == name &&
          (failure.at_call == call || (failure.from_then_on && call > failure.at_call)))
        code = failure.code;
  }
  return code == 0 ? cudaSuccess : report(static_cast<cudaError_t>(code), lasts(code));
}

cudaError_t report(cudaError_t error, bool sticky) {
  newest_error = error;
  if (sticky) {
    const std::lock_guard lock(state().mutex);
    state().broken = error;
  }
  return error;
}

cudaError_t last_error(bool clear) {
  const cudaError_t error = newest_error;
  if (clear) newest_error = cudaSuccess;
  return error;
}

namespace {

void* take(size_t bytes, Place place, int device) {
  const int no_reserve = standin_records() ? MAP_NORESERVE : 0;
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | no_reserve, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // NaN in every floating type: what nobody wrote must not look like a number.
  if (!standin_records()) std::memset(memory, 0xff, bytes);
  const std::lock_guard lock(state().mutex);
  state().allocations[reinterpret_cast<uintptr_t>(memory)] = {bytes, place, device};
  return memory;
}

bool give_back(void* pointer, Place place) {
  const Owner owner = owner_of(pointer);
  if (owner.place == place) freed(pointer, owner.bytes_behind);
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == all.allocations.end() || found->second.place != place) return false;
  if (place == Place::kDevice) all.used.at(static_cast<size_t>(found->second.device)) -= found->second.bytes;
  munmap(pointer, found->second.bytes);
  all.allocations.erase(found);
  return true;
}

}  // namespace

void* allocate(size_t bytes) {
  {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    size_t& used = all.used.at(static_cast<size_t>(chosen_device));
    if (used + bytes > all.device_bytes) return nullptr;
    used += bytes;
    all.contexts.insert(chosen_device);
  }
  return take(bytes, Place::kDevice, chosen_device);
}
bool release(void* pointer) { return give_back(pointer, Place::kDevice); }
void* allocate_host(size_t bytes) { return take(bytes, Place::kHost, -1); }
bool release_host(void* pointer) { return give_back(pointer, Place::kHost); }

Owner owner_of(const void* pointer) {
  State& all = state();
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard lock(all.mutex);
  auto found = all.allocations.upper_bound(address);
  if (found == all.allocations.begin()) return {};
  --found;
  const size_t offset = address - found->first;
  if (offset >= found->second.bytes) return {};
  return {found->second.place, found->second.device, found->second.bytes - offset};
}

}  // namespace standin

int standin_check_launch(const char* name, void* stream) {
  if (const cudaError_t error = standin::called("launch")) return error;
  if (const cudaError_t error = standin::called(name)) return error;
  const auto own = static_cast<cudaStream_t>(stream);
  if (standin::device_of(own) == standin::current_device()) return cudaSuccess;
  std::fprintf(stderr, "[standin] %s: a stream of GPU %d while GPU %d is current\n", name,
               standin::device_of(own), standin::current_device());
  return standin::report(cudaErrorInvalidResourceHandle);
}

int standin_check_pointer(const char* name, const void* pointer) {
  const standin::Owner owner = standin::owner_of(pointer);
  if (owner.place == standin::Place::kDevice && owner.device == standin::current_device()) return cudaSuccess;
  std::fprintf(stderr, "[standin] %s: a pointer to %s while GPU %d is current\n", name,
               owner.place == standin::Place::kDevice ? "another GPU's memory" : "the host's memory",
               standin::current_device());
  return standin::report(cudaErrorIllegalAddress, /*sticky=*/true);
}
