// Names of the hub: as huggingface_hub reads them, and what errors say.
#include "trainer/recipe/hub_name.h"

#include <gtest/gtest.h>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

TEST(HubNameTest, ReadsWhatTheOfficialClientReadsAndRefusesWhatItRefuses) {
  const Json golden = Json::parse(read_file(std::string(TYCHO_GOLDEN_DIR) + "/hub/names.json"));
  ASSERT_GT(golden.size(), 30U);
  for (const Json& one : golden) {
    const auto text = one.at("text").get<std::string>();
    const Json& wanted = one.at("name");
    const std::string problem = hub_name_problem(text);
    ASSERT_EQ(problem.empty(), !wanted.is_null()) << text << ": " << problem;
    if (wanted.is_null()) continue;
    const HubName name = parse_hub_name(text);
    EXPECT_EQ(name.kind == HubName::Kind::kDataset ? "dataset" : "model", wanted.at("kind")) << text;
    EXPECT_EQ(name.id, wanted.at("id")) << text;
    EXPECT_EQ(name.revision, wanted.at("revision")) << text;
    EXPECT_EQ(name.path, wanted.at("path")) << text;
    EXPECT_EQ(parse_hub_name(name.text()), name) << text;
  }
}

TEST(HubNameTest, NamesWithoutAnOwnerHaveAFormWithAPath) {
  const HubName name = parse_hub_name("hf://gpt2");
  EXPECT_EQ(name.id, "gpt2");
  EXPECT_EQ(name.text(), "hf://gpt2");
  EXPECT_EQ(name.below("config.json").text(), "hf://gpt2@main/config.json");
  EXPECT_EQ(parse_hub_name("hf://gpt2@main/config.json").path, "config.json");
  EXPECT_EQ(parse_hub_name("hf://datasets/wikitext").at("a/b").text(), "hf://datasets/wikitext@a%2Fb");
}

TEST(HubNameTest, ErrorsSayWhatToWrite) {
  for (const auto& [text, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"hf://dataset/a/b", "write hf://datasets/OWNER/NAME"},
           {"hf://spaces/a/b", "expected a model or a data set"},
           {"hf://a/b@", "a branch, a tag or a commit"},
           {"hf://a/b/../c", "a path inside the repository"},
           {"hf://a/b@../c", "a path inside the repository"},
           {"hf://a b/c", "letters, digits"},
           {"hf://", "names no repository"}})
    EXPECT_NE(hub_name_problem(text).find(part), std::string::npos) << text << ": " << hub_name_problem(text);
}

TEST(HubNameTest, CommitsAreFortyHexDigits) {
  EXPECT_TRUE(is_commit("0123456789abcdef0123456789abcdef01234567"));
  EXPECT_FALSE(is_commit("0123456789abcdef"));
  EXPECT_FALSE(is_commit("main"));
}

}  // namespace
}  // namespace tycho
