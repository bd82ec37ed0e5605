// One field of one line.
#include "trainer/data/sources/json_line.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

TEST(JsonLineTest, FindsTheFieldOfTheOuterObject) {
  const auto text = [](std::string_view line, const std::string& field = "text") {
    return text_of_json_line(line, field, "f:1");
  };
  EXPECT_EQ(text(R"({"text": "a"})"), "a");
  EXPECT_EQ(text(R"( {"id": 1, "text": "", "n": [1, {"text": "no"}, null, 1.5, true]} )"), "");
  EXPECT_EQ(text(R"({"meta": {"text": "no"}, "text": "yes"})"), "yes");
  EXPECT_EQ(text(R"({"a": {"text": 3}, "text": "\u00e9\ud83d\ude42\n\t\"\\\u0000."})"),
            std::string("\u00e9\U0001f642\n\t\"\\\0.", 12));
  EXPECT_EQ(text("{\"content\": \"x\"}\r", "content"), "x");
  EXPECT_EQ(text(R"({"text": 1, "text": "the last one counts"})"), "the last one counts");
}

TEST(JsonLineTest, SaysWhatIsWrongAndWhere) {
  const auto refuses = [](std::string_view line, std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { text_of_json_line(line, "text", "data.jsonl:7"); });
  };
  refuses("{\"text\": \"a\"", {"data.jsonl:7", "not JSON at byte 13"});
  refuses("{\"text\": \"a\"} x", {"data.jsonl:7", "not JSON"});
  refuses("text", {"not JSON at byte 2"});
  refuses("", {"not JSON"});
  refuses(R"({"text": "\ud83d"})", {"not JSON"});
  refuses(R"(["text"])", {"expected an object with the field \"text\", got a list"});
  refuses("3", {"got a number"});
  refuses(R"({"id": 1, "body": "x"})",
          {"data.jsonl:7 has no field \"text\"", "it has \"id\", \"body\"", "--field"});
  refuses("{}", {"it has none"});
  refuses(R"({"text": null})", {"must be a string, is null"});
  refuses(R"({"text": {"text": "x"}})", {"is an object"});
  refuses(R"({"text": "a", "text": 4})", {"is a number"});
  refuses(std::string(100000, '['), {"not JSON"});
}

}  // namespace
}  // namespace tycho
