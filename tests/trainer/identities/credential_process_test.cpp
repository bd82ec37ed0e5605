// Words of commands; what a command that fails says is in aws_identity_test.cpp.
#include "trainer/identities/credential_process.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tycho::testing {
namespace {

TEST(CommandWords, AreThoseOfAShell) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_words("  a  'b c' \"d\\\"e\\\\f\\g\" h\\ i '' \t\n"),
            (Words{"a", "b c", "d\"e\\f\\g", "h i", ""}));
  EXPECT_EQ(command_words("a$HOME;b|c"), Words{"a$HOME;b|c"});
  EXPECT_EQ(command_words(""), Words{});
}

TEST(CredentialProcess, PrintsMoreThanAPipeHolds) {
  const std::string text = output_of(R"(sh -c 'head -c 300000 /dev/zero | tr "\\0" x; printf y >&2')", {});
  EXPECT_EQ(text.size(), 300'000U);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'x'), 300'000);
}

}  // namespace
}  // namespace tycho::testing
