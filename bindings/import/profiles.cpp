// The profilers of other systems -> t.profile.
#include <fmt/format.h>

#include <cstdlib>

#include "bindings/import/systems.h"

namespace tycho {
namespace {

const char* const kTracePlace = "traces are in the run folder: docs/profiling.md";
const char* const kCounters = "metrics.jsonl has memory and speed of every step";

/// A key that counts steps, and the system's default for it.
struct Count {
  const char* theirs;
  const char* ours;
  const char* usual;
};

/// Returns the fields of the counts that a map does not set.
std::vector<std::string> usual_fields(const DocNode& map, const std::vector<Count>& counts) {
  std::vector<std::string> fields;
  for (const Count& count : counts)
    if (map.find(count.theirs) == nullptr)
      fields.push_back(fmt::format("{} = \"{}ba\"", count.ours, count.usual));
  return fields;
}

/// Defaults of Composer's cyclic_schedule.
const std::vector<Count> kComposerCounts = {{"warmup", "warmup", "1"}, {"active", "active", "4"}};
/// Defaults of torch.profiler.schedule as Nanotron calls it.
const std::vector<Count> kNanotronCounts = {{"skip_first", "skip_first", "3"},
                                            {"wait", "wait", "1"},
                                            {"warmup", "warmup", "1"},
                                            {"active", "active", "1"}};

Rows schedule_rows() {
  return {to("skip_first", "skip_first", count_of("ba")), to("wait", "wait", count_of("ba")),
          to("warmup", "warmup", count_of("ba")), to("active", "active", count_of("ba")),
          to("repeat", "repeat_count")};
}

/// Adds the rows for what torch.profiler records, by the names common to all systems.
Rows with_recording(Rows rows) {
  rows.push_back(to("record_shapes", "shapes"));
  rows.push_back(to("profile_memory", "memory"));
  rows.push_back(only("with_stack", {"false"}, "traces contain no stacks: remove it"));
  return rows;
}

Rows composer_profiler_rows() {
  return with_recording({
      group("schedule", schedule_rows()),
      left_out("with_flops", "traces contain no FLOPs"),
      left_out("use_gzip", kTracePlace),
      left_out("json_trace_handler", kTracePlace),
      left_out("torch_prof_folder", kTracePlace),
      left_out("torch_prof_filename", kTracePlace),
      left_out("torch_prof_remote_file_name", kTracePlace),
      only("torch_prof_memory_filename", {"null"}, "memory = true records memory allocations: remove it"),
      left_out("torch_prof_overwrite", kTracePlace),
      left_out("torch_prof_num_traces_to_keep", kTracePlace),
      left_out("torch_prof_record_shapes", "is record_shapes"),
      left_out("sys_prof_cpu", kCounters),
      left_out("sys_prof_memory", kCounters),
      left_out("sys_prof_disk", kCounters),
      left_out("sys_prof_net", kCounters),
      left_out("sys_prof_stats_thread_interval_seconds", kCounters),
  });
}

void map_composer(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
  if (!entry.node.is_map()) return mapper.problem(entry, "expected a map with a schedule");
  const DocNode* schedule = entry.node.find("schedule");
  const DocNode none;
  const bool given = schedule != nullptr && schedule->is_map();
  mapper.component(entry, "profile", "t.profile", composer_profiler_rows(),
                   usual_fields(given ? *schedule : none, kComposerCounts));
  mapper.note(entry, "Composer restarts its schedule in every epoch; Tycho counts from the first step");
}

Rows nanotron_profiler_rows() {
  Rows rows = with_recording(schedule_rows());
  rows.push_back(left_out("profiler_export_path", kTracePlace));
  rows.push_back(left_out("export_chrome_trace", kTracePlace));
  return rows;
}

void map_nanotron_profiler(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return mapper.remark(entry, "the default");
  if (!entry.node.is_map()) return mapper.problem(entry, "expected a map");
  mapper.component(entry, "profile", "t.profile", nanotron_profiler_rows(),
                   usual_fields(entry.node, kNanotronCounts));
}

/// Returns a key of [profiling] as a count of steps; nullopt after adding a problem.
std::optional<int64_t> titan_count(Mapper& mapper, const char* key, int64_t usual) {
  const std::string path = std::string("profiling.") + key;
  const DocNode* node = mapper.root().at(path);
  if (node == nullptr) return usual;
  const DocScalar scalar = mapper.value(node);
  if (scalar.is(DocScalar::Kind::kInteger)) return std::strtoll(scalar.text.c_str(), nullptr, 10);
  mapper.problem({path, *node}, "expected a whole number");
  return std::nullopt;
}

void map_titan_profiling(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) != "true") return mapper.remark(entry, "the default");
  const auto period = titan_count(mapper, "profile_freq", 10);
  const auto active = titan_count(mapper, "profiler_active", 1);
  const auto warmup = titan_count(mapper, "profiler_warmup", 3);
  if (!period || !active || !warmup) return;
  const int64_t wait = *period - *active - *warmup;
  if (wait < 0)
    return mapper.problem(entry, "profile_freq is less than profiler_warmup and profiler_active together");
  mapper.emit(entry, "profile",
              fmt::format("t.profile {{ wait = \"{}ba\", warmup = \"{}ba\", active = \"{}ba\", "
                          "repeat_count = 0 }}",
                          wait, *warmup, *active));
}

}  // namespace

Row foundry_profiler_row() { return by("profiler", map_composer, composer_profiler_rows()); }

Row nanotron_profiler_row() { return by("profiler", map_nanotron_profiler, nanotron_profiler_rows()); }

Row titan_profiling_row() {
  return group("profiling",
               {by("enable_profiling", map_titan_profiling), left_out("save_traces_folder", kTracePlace),
                elsewhere("profile_freq"), elsewhere("profiler_active"), elsewhere("profiler_warmup"),
                only("enable_memory_snapshot", {"false"}, "r.profile.memory records memory allocations"),
                left_out("save_memory_snapshot_folder", kTracePlace)});
}

}  // namespace tycho
