// Tests of a server's text as part of a message.
#include "trainer/http/answer_line.h"

#include <gtest/gtest.h>

#include "trainer/base/secrets.h"

namespace tycho {
namespace {

TEST(AnswerLine, IsOneLineOfLimitedLength) {
  EXPECT_EQ(answer_line("a\r\nb\x1b[31m\x7f", 100), "a  b [31m ");
  EXPECT_EQ(answer_line("abcdef", 3), "abc");
  EXPECT_EQ(answer_line("", 3), "");
}

TEST(AnswerLine, ShowsNoPartOfASecretThatTheLimitWouldCut) {
  register_secret("hf_AnswerLineSecret");
  EXPECT_EQ(answer_line("token hf_AnswerLineSecret", 15).find("hf_"), std::string::npos);
}

}  // namespace
}  // namespace tycho
