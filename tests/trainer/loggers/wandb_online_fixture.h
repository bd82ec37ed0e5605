// Parts that the tests of runs with a W&B server share.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "tests/trainer/loggers/wandb_stand_in.h"

namespace tycho {

inline const char* const kKey = "0123456789abcdef0123456789abcdef01234567";

/// An environment with a server and a key.
struct Online {
  explicit Online(const std::string& server_url)
      : url("WANDB_BASE_URL", server_url.c_str()), key("WANDB_API_KEY", kKey), mode("WANDB_MODE", nullptr) {}
  ScopedEnv url, key, mode;
};

inline std::vector<SinkConfig> online(const std::string& mode = "online") {
  WandbSinkConfig config;
  config.project = "proj";
  config.tags = {"a"};
  config.mode = mode;
  return {SinkConfig{{JsonlSinkConfig{}}}, SinkConfig{{config}}};
}

inline void write_recipe(const std::string& dir) {
  write_text(dir + "/recipe.json",
             R"({"seed": 17, "log": {"sinks": [{"kind": "wandb", "project": "proj", "names": "tycho"}]}})");
}

/// Steps 1 to `last`, once each.
inline void expect_every_step_once(const testing::StoredRun& run, int64_t last) {
  ASSERT_EQ(run.history.size(), static_cast<size_t>(last));
  for (int64_t step = 1; step <= last; ++step) {
    const Json row = Json::parse(run.history[static_cast<size_t>(step - 1)], nullptr, false);
    ASSERT_TRUE(row.is_object()) << run.history[static_cast<size_t>(step - 1)];
    EXPECT_EQ(row.at("_step"), step);
  }
}

}  // namespace tycho
