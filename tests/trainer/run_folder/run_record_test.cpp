// Records of run folders read back as they were written.
#include "trainer/run_folder/run_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/hash.h"
#include "trainer/callbacks/command.h"
#include "trainer/run_folder/run_folder.h"

namespace tycho {
namespace {

RunRequest request(int64_t seed) {
  const std::map<std::string, std::string> sources = {
      {"a.lua", "-- a"}, {"../b.lua", "-- b"}, {"./a.lua", "-- c"}};
  Json provenance = Json::object();
  for (const auto& [name, text] : sources)
    provenance["source." + name] = Json::array({{{"by", "source"}, {"at", name}, {"value", hash_hex(text)}}});
  TrainConfig config;
  config.seed = seed;
  return {.config = config,
          .recipe_lua = "return r\n",
          .provenance_json = provenance.dump(),
          .recipe_hash = "abc",
          .sources = sources,
          .argv = {"tycho", "run", "a.lua", "run_name=it's"}};
}

TEST(RunRecord, GivesBackWhatWasAsked) {
  const TempDir dir;
  const RunRequest asked = request(1);
  write_run_folder(real_files(), dir / "r", asked, Json::object());
  const RunRecord record = read_run_record(dir / "r");
  EXPECT_EQ(record.config.at("seed"), 1);
  EXPECT_EQ(record.argv, asked.argv);
  EXPECT_EQ(record.environment, recorded_environment());
  EXPECT_EQ(read_run_sources(record), asked.sources);
}

TEST(RunRecord, GoesWithoutTheEnvironmentThatOnlyItsOwnerReads) {
  const TempDir dir;
  write_run_folder(real_files(), dir / "r", request(1), Json::object());
  std::filesystem::remove(dir / "r/env.json");
  EXPECT_EQ(read_run_record(dir / "r").environment, Json::object());
}

TEST(RunRecord, IsTheNewestAttempt) {
  const TempDir dir;
  for (const int64_t seed : {1, 2, 3})
    write_run_folder(real_files(), dir / "r", request(seed), Json::object());
  const RunRecord record = read_run_record(dir / "r");
  EXPECT_EQ(record.folder, dir / "r/attempt-3");
  EXPECT_EQ(record.config.at("seed"), 3);
}

TEST(RunRecord, RefusesFoldersOfNoRun) {
  const TempDir dir;
  try {
    read_run_record(dir / "nothing");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
}

TEST(RunRecord, KnowsTheCommandsThatHold) {
  const TempDir dir;
  EXPECT_EQ(applied_commands(dir / "nothing"), Json::array());
  std::ofstream events(dir / "events.jsonl");
  const auto command = [&](int64_t step, const char* name, const Json& arguments) {
    events << Json{{"kind", "command"},
                   {"facts",
                    {{"step", step},
                     {"command", {{"name", name}, {"arguments", arguments}, {"by", "repl"}}}}}}
           << "\n";
  };
  command(3, "set_lr", {{"lr", 0.5}});
  events << R"({"kind":"warning","facts":{"step":4,"command":{"name":"set_lr"}}})"
         << "\n";
  command(9, "stop", Json::object());
  events << R"({"kind":"resume","facts":{"step":5,"path":"x"}})"
         << "\n";
  command(6, "set_clip", {{"norm", 1}});
  command(6, "set_optimizer", {{"name", "eps"}, {"value", 1e-6}});
  command(6, "set_optimizer", {{"name", "beta"}, {"value", 0.5}});
  command(6, "set_optimizer", {{"name", "weight_decay"}, {"value", 0.5}});
  const auto ended = [&](const char* name, const char* key) {
    const Json facts = {{"step", 6}, {kEndedCommand, name}, {kEndedKey, key}};
    events << Json{{"kind", "warning"}, {"facts", facts}} << "\n";
  };
  ended("set_optimizer", "optimizer.eps");
  ended("set_weight_decay", "optimizer.weight_decay");
  events << R"({"kind":"command","fa)";
  events.close();
  const Json held = applied_commands(dir.path());
  ASSERT_EQ(held.size(), 3u);
  EXPECT_EQ(held[0], (Json{{"name", "set_lr"},
                           {"arguments", {{"lr", 0.5}}},
                           {"by", "repl"},
                           {"step", 3},
                           {"key", "optimizer.lr"}}));
  EXPECT_EQ(held[1].at("name"), "set_clip");
  EXPECT_EQ(held[2].at("key"), "optimizer.beta");
}

}  // namespace
}  // namespace tycho
