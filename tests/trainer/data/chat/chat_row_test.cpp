// Lines of finetuning data: what is read, and what each wrong line is told.
#include "trainer/data/chat/chat_row.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

TEST(ChatRow, ReadsConversationsAndPrompts) {
  const ChatRow talk = parse_chat_row(
      R"({"messages": [{"role": "system", "content": ""}, {"content": "größe", "role": "user"},)"
      R"( {"role": "assistant", "content": "\u00fc"}]})",
      "f:1");
  ASSERT_EQ(talk.messages.size(), 3u);
  EXPECT_EQ(talk.messages[1].content, "größe");
  EXPECT_EQ(talk.messages[2].content, "ü");
  const ChatRow pair = parse_chat_row("{\"prompt\": \"a\", \"response\": \"b\"}\r", "f:1");
  EXPECT_TRUE(pair.messages.empty());
  EXPECT_EQ(pair.prompt + pair.response, "ab");
  EXPECT_EQ(parse_chat_row(R"({"completion": "b", "prompt": "a"})", "f:1").response, "b");
}

TEST(ChatRow, SaysWhereAndWhatIsWrong) {
  const std::string user = R"({"role": "user", "content": "x"})",
                    answer = R"({"role": "assistant", "content": "y"})";
  const auto talk = [](const std::string& messages) { return "{\"messages\": [" + messages + "]}"; };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "not valid JSON at byte 2"},
      {"[1]", "expected a JSON object, is array"},
      {"{}", "must have exactly the key \"messages\", or \"prompt\" and \"response\"; has none"},
      {R"({"prompt": "a"})", "has \"prompt\""},
      {R"({"prompt": "a", "response": "b", "id": 3})", "has \"prompt\", \"response\", \"id\""},
      {R"({"prompt": "a", "response": ""})", "the response is empty"},
      {R"({"prompt": "", "response": "b"})", "the prompt is empty"},
      {R"({"prompt": "a", "response": 3})", "the response must be text, is number"},
      {R"({"prompt": "a", "prompt": "a", "response": "b"})", "appears twice"},
      {"{\"prompt\": \"a\xff\", \"response\": \"b\"}", "not UTF-8 at byte 14"},
      {"{\"messages\": {}}", "must be a list, is object"},
      {talk(answer), "needs at least two messages, has 1"},
      {talk(user + "," + user), "messages 1 and 2 both have the role \"user\""},
      {talk(answer + "," + user + "," + answer), "the first message is from the assistant"},
      {talk(user + "," + answer + "," + user), "the last message has the role \"user\""},
      {talk(user + R"(, {"role": "bot", "content": "y"})"),
       "message 2 has the role \"bot\": roles are system, user"},
      {talk(user + R"(, {"role": "assistant", "content": ""})"), "the content of message 2 is empty"},
      {talk(user + R"(, {"role": "assistant", "content": null})"),
       "content of message 2 must be text, is null"},
      {talk(user + R"(, {"role": "assistant", "content": "y", "name": "z"})"),
       "must have exactly \"role\" and \"content\", has \"role\", \"content\", \"name\""},
      {talk(user + ", 3"), "must have exactly \"role\" and \"content\", has number"},
  };
  for (const auto& [line, message] : cases)
    expect_error(ExitCode::kUnusable, {"[data/x.jsonl:7]", message},
                 [&] { parse_chat_row(line, "data/x.jsonl:7"); });
}

}  // namespace
}  // namespace tycho
