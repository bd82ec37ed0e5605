// Looks at every read and write of the kernels: their sources are compiled with the instrumentation of the
// thread sanitizer and of the undefined-behaviour sanitizer, whose functions stand here instead of theirs.
#include "tests/emulated_cuda/memory.h"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/emulated_cuda/declared.h"
#include "tests/emulated_cuda/emulator.h"
#include "tests/emulated_cuda/fiber.h"

namespace emulated {

Runner runner;

namespace {

/// Who touched a place last. `many`: readers were 0 one thread, 1 of one warp, 2 of one block, 3 of several.
struct Touch {
  uint32_t turn = 0;
  uint32_t thread : 10 = 0, warp_turn : 20 = 0, many : 2 = 0;
};
/// Two bytes of memory.
struct Cell {
  Touch write, read;
};
constexpr uintptr_t kCellBytes = 2;

struct Region {
  uintptr_t begin = 0, end = 0;
  const char* what = "";
  Cell* cells = nullptr;
  size_t num_cells = 0;
  bool is_tensor = false;

  bool holds(uintptr_t at, size_t size) const { return at >= begin && at + size <= end; }
  /// Zero pages until touched.
  Cell* cells_or_make() {
    if (cells != nullptr) return cells;
    num_cells = (end - begin) / kCellBytes + 1;
    void* const made = mmap(nullptr, num_cells * sizeof(Cell), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) fault("no memory to watch %zu bytes with", static_cast<size_t>(end - begin));
    return cells = static_cast<Cell*>(made);
  }
  void free_cells() {
    if (cells != nullptr) munmap(cells, num_cells * sizeof(Cell));
    cells = nullptr;
  }
};

std::mutex mutex;                        // of `regions`
std::map<uintptr_t, Region> regions;     // by their first byte
std::array<Region*, 64> found_lately{};  // by a few bits of the address

constexpr size_t kSharedBytes = 512 * 1024, kGap = 256;
alignas(256) char shared[kSharedBytes];
struct SharedMemory {
  std::array<Region, 32> regions;
  std::array<Cell, 256 * 1024 / kCellBytes> cells;
  size_t num_regions = 0, used = 0, used_cells = 0;
};
SharedMemory shared_memory_of_block;

Region image_of_this_code() {
  Region image{.what = "static data"};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        uintptr_t begin = UINTPTR_MAX, end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (const auto& part = info->dlpi_phdr[i]; part.p_type == PT_LOAD) {
            begin = std::min<uintptr_t>(begin, info->dlpi_addr + part.p_vaddr);
            end = std::max<uintptr_t>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
          }
        const auto here = reinterpret_cast<uintptr_t>(&runner);
        if (here < begin || here >= end) return 0;
        static_cast<Region*>(data)->begin = begin, static_cast<Region*>(data)->end = end;
        return 1;
      },
      &image);
  return image;
}

bool on_the_hosts_stack(uintptr_t at) {
  thread_local uintptr_t begin = 0, end = 0;  // of the thread that launches
  if (begin == 0) [[unlikely]] {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    begin = reinterpret_cast<uintptr_t>(lowest), end = begin + size;
  }
  return at >= begin && at < end;
}

template <class T>
bool within(const T& object, uintptr_t at) {
  return at - reinterpret_cast<uintptr_t>(&object) < sizeof object;
}

Region* shared_region(uintptr_t at, size_t size) {
  SharedMemory& memory = shared_memory_of_block;
  for (size_t i = 0; i < memory.num_regions; ++i)
    if (memory.regions[i].holds(at, size)) return &memory.regions[i];
  return nullptr;
}

[[noreturn]] void outside(uintptr_t at, size_t size, bool write) {
  const char* const verb = write ? "writes" : "reads";
  if (within(shared, at)) fault("%s %zu bytes of shared memory beyond what is declared", verb, size);
  auto next = regions.upper_bound(at);
  if (next != regions.begin()) {
    const Region& before = std::prev(next)->second;
    if (at < before.end + 4096)
      fault("%s %zu bytes at byte %zu of %s of %zu bytes", verb, size, at - before.begin, before.what,
            before.end - before.begin);
  }
  if (next != regions.end() && next->second.begin < at + 4096)
    fault("%s %zu bytes, %zu before %s", verb, size, next->second.begin - at, next->second.what);
  fault("%s %zu bytes at %p, which is nobody's memory", verb, size, reinterpret_cast<void*>(at));
}

/// Null where nothing has to be watched: the thread's own stack, its arguments, the emulator's own data.
Region* region_of(uintptr_t at, size_t size, bool write) {
  static Region image = image_of_this_code();
  if (within(place, at) || within(runner, at)) return nullptr;
  static const auto stacks = reinterpret_cast<uintptr_t>(stack_memory(0));
  if (at - stacks < 1024 * kStackBytes) return nullptr;
  if (on_the_hosts_stack(at)) return nullptr;
  Region*& lately = found_lately[at >> 14 & 63];
  if (lately != nullptr && lately->holds(at, size)) return lately;
  if (Region* region = shared_region(at, size)) return region;
  if (auto next = regions.upper_bound(at); next != regions.begin())
    if (Region& region = std::prev(next)->second; region.holds(at, size)) return lately = &region;
  if (within(shared, at)) outside(at, size, write);
  if (image.holds(at, size)) return &image;
  outside(at, size, write);
}

/// Whether what was done before is sure to be done: by an earlier launch, before a barrier of this block, by
/// this thread, or before the last __syncwarp of this warp.
inline bool ordered(const Touch& before) {
  if (before.turn < runner.first_turn_of_launch) [[likely]]
    return true;
  if (before.turn < runner.first_turn_of_block || before.many == 3) return false;
  if (before.turn < runner.turn) return true;
  if (before.many == 0 && before.thread == runner.thread) return true;
  return before.many < 2 && before.thread / 32 == runner.thread / 32 && before.warp_turn < runner.warp_turn;
}

Touch touch_now(uint32_t many = 0) { return {runner.turn, runner.thread, runner.warp_turn, many}; }

void remember_read(Touch& read) {
  if (read.turn < runner.first_turn_of_launch)
    read = touch_now();
  else if (read.turn < runner.first_turn_of_block || read.many == 3)
    read = touch_now(3);
  else if (read.turn < runner.turn || (read.thread == runner.thread && read.many == 0))
    read = touch_now();
  else
    read = touch_now(read.many == 2 || read.thread / 32 != runner.thread / 32 ? 2 : 1);
}

[[noreturn]] void race(const Region& region, uintptr_t at, bool write, const Touch& before, const char* did) {
  const char* const verb = write ? "writes" : "reads";
  if (before.turn < runner.first_turn_of_block)
    fault("%s byte %zu of %s, which another block %s: blocks have no order", verb, at - region.begin,
          region.what, did);
  fault("%s byte %zu of %s, which thread %u of the block %s without a barrier in between", verb,
        at - region.begin, region.what, before.thread, did);
}

void check_declared(Region& region, uintptr_t at, size_t size, bool write) {
  const Cell* const cells = region.cells_or_make();
  const bool written_before = cells[(at - region.begin) / kCellBytes].write.turn >= first_turn_of_call();
  if (!is_declared(at, size, write, written_before))
    fault("%s %zu bytes at byte %zu of %s of %zu bytes, which kernel_work.cpp does not declare",
          write ? "writes" : "reads", size, at - region.begin, region.what, region.end - region.begin);
}

}  // namespace

void touch(const void* pointer, size_t size, bool write) {
  if (!runner.active) return;
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  Region* const region = region_of(at, size, write);
  if (region == nullptr) return;
  if (region->is_tensor) check_declared(*region, at, size, write);
  Cell* const cells = region->cells_or_make();
  for (size_t i = (at - region->begin) / kCellBytes; i <= (at + size - 1 - region->begin) / kCellBytes; ++i) {
    Cell& cell = cells[i];
    const uintptr_t byte = region->begin + i * kCellBytes;
    // A single byte (of fp8) shares its cell with a neighbour, which another thread may write: it is noted
    // only.
    if (size >= kCellBytes && !ordered(cell.write)) race(*region, byte, write, cell.write, "wrote");
    if (write) {
      if (size >= kCellBytes && !ordered(cell.read)) race(*region, byte, write, cell.read, "read");
      cell.write = touch_now();
    } else {
      remember_read(cell.read);
    }
  }
}

void remember(const void* data, size_t num_bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const std::lock_guard lock(mutex);
  Region& region = regions[begin];
  region.free_cells();
  region = {.begin = begin, .end = begin + num_bytes, .what = "a tensor", .is_tensor = true};
}

void forget(const void* data) {
  const std::lock_guard lock(mutex);
  const auto region = regions.find(reinterpret_cast<uintptr_t>(data));
  if (region == regions.end()) return;
  region->second.free_cells();
  regions.erase(region);
  found_lately = {};
}

size_t bytes_from(const void* data) {
  const auto at = reinterpret_cast<uintptr_t>(data);
  const auto next = regions.upper_bound(at);
  return next == regions.begin() || std::prev(next)->second.end < at ? 0 : std::prev(next)->second.end - at;
}

uintptr_t first_untouched(uintptr_t begin, size_t num_bytes, bool written, uint32_t since_turn) {
  const auto next = regions.upper_bound(begin);
  if (num_bytes == 0 || next == regions.begin()) return 0;
  Region& region = std::prev(next)->second;
  if (!region.holds(begin, num_bytes)) return begin;
  const Cell* const cells = region.cells_or_make();
  for (size_t i = (begin - region.begin) / kCellBytes;
       i <= (begin + num_bytes - 1 - region.begin) / kCellBytes; ++i)
    if ((written ? cells[i].write : cells[i].read).turn < since_turn)
      return std::max(begin, region.begin + i * kCellBytes);
  return 0;
}

void note_touched(const void* data, size_t num_bytes, bool write) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto next = regions.upper_bound(begin);
  if (num_bytes == 0 || next == regions.begin()) return;
  Region& region = std::prev(next)->second;
  if (!region.holds(begin, num_bytes)) return;
  Cell* const cells = region.cells_or_make();
  ++runner.turn;
  for (size_t i = (begin - region.begin) / kCellBytes;
       i <= (begin + num_bytes - 1 - region.begin) / kCellBytes; ++i)
    (write ? cells[i].write : cells[i].read) = touch_now();
}

void forget_shared() {
  SharedMemory& memory = shared_memory_of_block;
  memory.num_regions = memory.used = memory.used_cells = 0;
}

void* make_shared(size_t num_bytes, size_t alignment) {
  SharedMemory& memory = shared_memory_of_block;
  const size_t begin = (memory.used + kGap + alignment - 1) / alignment * alignment;
  const size_t num_cells = num_bytes / kCellBytes + 1;
  if (memory.num_regions == memory.regions.size() || begin + num_bytes + kGap > kSharedBytes ||
      memory.used_cells + num_cells > memory.cells.size())
    fault("declares more shared memory than the emulator has");
  memory.used = begin + num_bytes;
  char* const data = shared + begin;
  std::memset(data, 0xff, num_bytes);
  Cell* const cells = memory.cells.data() + memory.used_cells;
  std::fill_n(cells, num_cells, Cell{});
  memory.used_cells += num_cells;
  const auto address = reinterpret_cast<uintptr_t>(data);
  memory.regions[memory.num_regions++] = {address, address + num_bytes, "shared memory", cells, num_cells};
  return data;
}

}  // namespace emulated
