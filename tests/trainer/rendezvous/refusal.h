// What a step that must not work says.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "trainer/base/error.h"

namespace tycho {

/// "not refused" when it throws no Error; with a code that is not `code`, the test fails.
inline std::string refusal_of(const std::function<void()>& step, ExitCode code = ExitCode::kTopology) {
  try {
    step();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "not refused";
}

}  // namespace tycho

#define EXPECT_CONTAINS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)
