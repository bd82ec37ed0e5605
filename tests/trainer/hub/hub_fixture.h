// A stand-in hub and an empty cache, which the variables of the process name.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/trainer/hub/hub_server.h"
#include "trainer/base/error.h"
#include "trainer/hub/hub_files.h"
#include "trainer/hub/hub_pins.h"

namespace tycho::testing {

class HubFixture : public ::testing::Test {
 protected:
  HubFixture() {
    char pattern[] = "/tmp/tycho-hub-XXXXXX";
    home_ = ::mkdtemp(pattern);
    for (const char* name :
         {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
          "HUGGINGFACE_HUB_CACHE", "HF_HUB_DISABLE_SYMLINKS", "HF_HUB_DISABLE_IMPLICIT_TOKEN",
          "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_XET", "http_proxy"})
      ::unsetenv(name);
    ::setenv("HF_HOME", home_.c_str(), 1);
    ::setenv("HF_ENDPOINT", server_.url().c_str(), 1);
    set_hub_access(HubAccess::kFetch);
    forget_hub_pins();
  }
  ~HubFixture() override {
    std::filesystem::remove_all(home_);
    set_hub_access(HubAccess::kFetch);
  }
  void TearDown() override { EXPECT_TRUE(server_.problems().empty()) << server_.problems().front(); }

  /// Runs `act`, which must fail with this code and these words.
  template <class Act>
  static void expect_failure(const Act& act, ExitCode code, const std::string& words) {
    try {
      act();
      ADD_FAILURE() << "no error: " << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  HubServer server_;
  std::string home_;
};

}  // namespace tycho::testing
