// Profiler sections of other systems.
#include <gtest/gtest.h>

#include "bindings/import/import.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

/// The recipe, or what was said against it.
std::string imported(const std::string& file, const std::string& text) {
  try {
    return import_recipe(file, text).lua;
  } catch (const Error& error) {
    return error.what();
  }
}

std::string composer(const std::string& lines) {
  return imported("x.yaml", "max_duration: 10ba\ntrain_loader: {name: text}\n" + lines);
}

std::string titan(const std::string& lines) {
  return imported("x.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[profiling]\n" + lines);
}

TEST(ImportProfiles, TakeComposersSchedule) {
  const std::string lua = composer(
      "profiler:\n  schedule:\n    skip_first: 2\n    wait: 20\n    active: 3\n    repeat: 0\n"
      "  json_trace_handler: {folder: x}\n  record_shapes: true\n");
  EXPECT_HAS(lua, "r.profile = t.profile {");
  for (const char* field : {"skip_first = \"2ba\"", "wait = \"20ba\"", "active = \"3ba\"", "repeat_count = 0",
                            "warmup = \"1ba\"", "shapes = true"})
    EXPECT_HAS(lua, field);
}

TEST(ImportProfiles, KnowComposersDefaults) {
  EXPECT_HAS(composer("profiler: {schedule: {wait: 7}}\n"), "active = \"4ba\"");
  EXPECT_EQ(composer("profiler: null\n").find("t.profile"), std::string::npos);
}

TEST(ImportProfiles, RefuseWhatIsNotSupported) {
  EXPECT_HAS(composer("profiler: {schedule: {wait: 7, wiat: 1}}\n"), "wiat");
  EXPECT_HAS(composer("profiler: {schedule: {active: \"3,\"}}\n"), "expected a whole number");
  EXPECT_HAS(composer("profiler: {with_stack: true}\n"), "traces contain no stacks");
  EXPECT_HAS(composer("profiler: 3\n"), "expected a map");
  EXPECT_HAS(composer("profiling: {schedule: {wait: 1}}\n"), "did you mean \"profiler\"?");
}

TEST(ImportProfiles, TakeTorchTitansPeriod) {
  EXPECT_HAS(titan("enable_profiling = true\nprofile_freq = 100\nprofiler_active = 2\n"),
             "profile = t.profile { wait = \"95ba\", warmup = \"3ba\", active = \"2ba\", repeat_count = 0 }");
  EXPECT_EQ(titan("enable_profiling = false\nprofile_freq = 100\n").find("t.profile"), std::string::npos);
  EXPECT_HAS(titan("enable_profiling = true\nprofile_freq = 2\n"), "profile_freq is less than");
}

TEST(ImportProfiles, TakeNanotronsSchedule) {
  const std::string yaml = read_file(TYCHO_SOURCE_DIR "/tests/golden/import/nanotron.yaml");
  const std::string lua = imported("x.yaml", yaml + "\nprofiler:\n  profiler_export_path: ./x\n  wait: 5\n");
  for (const char* field : {"t.profile {", "wait = \"5ba\"", "skip_first = \"3ba\"", "active = \"1ba\""})
    EXPECT_HAS(lua, field);
}

}  // namespace
}  // namespace tycho
