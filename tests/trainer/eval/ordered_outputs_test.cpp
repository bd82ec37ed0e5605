// Texts that grow at the same time, as a receiver gets them.
#include "trainer/eval/ordered_outputs.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

class Transcript : public TextReceiver {
 public:
  void begin(size_t text) override { seen += "<" + std::to_string(text) + ">"; }
  void piece(const std::string& text) override { seen += text; }
  void end(const Generated& text) override { seen += "</" + std::to_string(text.tokens) + ">"; }
  std::string seen;
};

TEST(OrderedOutputs, HandsOnTheFirstAtOnceAndOthersWhenTheirTurnComes) {
  Transcript transcript;
  OrderedOutputs texts(3, transcript);
  EXPECT_EQ(transcript.seen, "<0>");
  texts.piece(1, "b");
  texts.piece(0, "a");
  EXPECT_EQ(transcript.seen, "<0>a");
  texts.piece(2, "c");
  texts.end(2, {.tokens = 7});
  texts.piece(1, "B");
  EXPECT_EQ(transcript.seen, "<0>a");
  texts.end(0, {.tokens = 5});
  EXPECT_EQ(transcript.seen, "<0>a</5><1>bB");
  texts.piece(1, "!");
  texts.end(1, {.tokens = 6});
  EXPECT_EQ(transcript.seen, "<0>a</5><1>bB!</6><2>c</7>");
}

TEST(OrderedOutputs, NoneIsNothing) {
  Transcript transcript;
  const OrderedOutputs texts(0, transcript);
  EXPECT_EQ(transcript.seen, "");
}

}  // namespace
}  // namespace tycho
