// Stop strings and characters over the borders of tokens.
#include "trainer/eval/text_stream.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

struct Outcome {
  std::vector<std::string> pieces;
  bool stopped = false;
  std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

Outcome stream(const std::vector<std::string>& stops, const std::vector<std::string>& tokens) {
  Outcome outcome;
  TextStream text(stops, [&](const std::string& piece) { outcome.pieces.push_back(piece); });
  for (const std::string& token : tokens) {
    outcome.stopped = text.add(token);
    if (outcome.stopped) return outcome;
  }
  text.finish();
  return outcome;
}

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  return bytes;
}

TEST(TextStreamTest, EmitsAtOnceWhatCannotBeginAStopString) {
  EXPECT_EQ(stream({"END"}, {"ab", "cE", "N", "x"}).pieces, (std::vector<std::string>{"ab", "c", "ENx"}));
}

TEST(TextStreamTest, KeepsCharactersWhole) {
  EXPECT_EQ(stream({}, bytes_of("aö€😀")).pieces, (std::vector<std::string>{"a", "ö", "€", "😀"}));
  EXPECT_EQ(stream({}, {"a\xE2\x82"}).text(), "a\xE2\x82");  // the end of the text cut one
}

TEST(TextStreamTest, EndsBeforeAStopStringOverTokenBorders) {
  for (const auto& tokens : {bytes_of("one\n\ntwo"), std::vector<std::string>{"one\n", "\ntwo"},
                             std::vector<std::string>{"one\n\ntwo"}}) {
    const Outcome outcome = stream({"\n\n"}, tokens);
    EXPECT_TRUE(outcome.stopped);
    EXPECT_EQ(outcome.text(), "one");
  }
}

TEST(TextStreamTest, TheFirstToBeCompleteCountsHoweverTokensAreCut) {
  const std::vector<std::string> stops = {"abcd", "bc", "xbc"};
  for (const auto& tokens : {bytes_of("..abcd"), std::vector<std::string>{"..abcd"}})
    EXPECT_EQ(stream(stops, tokens).text(), "..a");
  for (const auto& tokens : {bytes_of("..xbc"), std::vector<std::string>{"..xbc"}})
    EXPECT_EQ(stream(stops, tokens).text(), "..");  // the longest of those that end here
}

TEST(TextStreamTest, AStopStringThatRepeatsItselfIsFound) {
  EXPECT_EQ(stream({"aab"}, bytes_of("aaab")).text(), "a");
  EXPECT_EQ(stream({"abab!"}, bytes_of("ababab!")).text(), "ab");
}

TEST(TextStreamTest, AStopStringThatIsNeverWholeIsText) {
  const Outcome outcome = stream({"stop!"}, {"do not sto"});
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(outcome.text(), "do not sto");
}

}  // namespace
}  // namespace tycho
