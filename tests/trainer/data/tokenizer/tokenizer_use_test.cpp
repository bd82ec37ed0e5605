// Files beside a tokenizer: the ids that transformers gives, and what is refused by name.
#include "trainer/data/tokenizer/tokenizer_use.h"

#include <filesystem>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/data/tokenizer/vocab_files.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::string style(const std::string& name) { return golden("tokenizer_styles/" + name); }

/// Writes the folder of a case, and returns the path of its tokenizer.
std::string write_folder(const std::string& folder, const Json& one) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, value] : one["beside"].items())
    write_text(folder + "/" + name + ".json", value.dump());
  const std::string text = read_file(style(one["style"].get<std::string>() + ".json"));
  if (!one["vocab"].get<bool>()) {
    write_text(folder + "/tokenizer.json", text);
    return folder + "/tokenizer.json";
  }
  const auto model = SortedJson::parse(text)["model"];
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : model["merges"])
    merges += merge.is_string() ? merge.get<std::string>() + "\n"
                                : merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  write_text(folder + "/vocab.json", model["vocab"].dump());
  write_text(folder + "/merges.txt", merges);
  return folder + "/vocab.json";
}

std::vector<int32_t> with_added(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids = tokenizer.text_begin();
  for (const int32_t id : tokenizer.encode(text)) ids.push_back(id);
  for (const int32_t id : tokenizer.text_end()) ids.push_back(id);
  return ids;
}

TEST(TokenizerUse, FoldersGiveTheIdsThatTransformersGives) {
  const TempDir dir;
  const Json cases = parse_json(read_file(golden("tokenizer_folders/tokenizer_folders.json")), "golden");
  for (const Json& one : cases) {
    const std::string name = one["name"];
    const auto tokenizer = load_tokenizer(write_folder(dir / name, one));
    EXPECT_EQ(tokenizer->size(), one["size"].get<int>()) << name;
    const auto named = [&](const char* key, const std::string& found) {
      return one[key].is_null() ? found : one[key].get<std::string>();  // unnamed: a well-known one is found
    };
    EXPECT_EQ(find_eos_token(*tokenizer), named("eos", find_eos_token(*tokenizer))) << name;
    EXPECT_EQ(find_bos_token(*tokenizer), named("bos", find_bos_token(*tokenizer))) << name;
    EXPECT_EQ(tokenizer->info().pad, one["pad"].is_null() ? "" : one["pad"].get<std::string>()) << name;
    for (size_t i = 0; i < one["texts"].size(); ++i)
      EXPECT_EQ(with_added(*tokenizer, one["texts"][i]), one["ids"][i].get<std::vector<int32_t>>())
          << name << ": " << one["texts"][i];
  }
  EXPECT_GT(cases.size(), 20u);
}

class TokenizerUseTest : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const std::string& from, const Json& config) {
    write_text(dir_ / "tokenizer_config.json", config.dump());
    const std::string path = dir_ / (from.ends_with(".model") ? "tokenizer.model" : "tokenizer.json");
    write_text(path, read_file(style(from)));
    return load_tokenizer(path);
  }
  TempDir dir_;
};

TEST_F(TokenizerUseTest, ATokenWithAnotherIdIsRefused) {
  const Json config = {{"added_tokens_decoder", {{"412", {{"content", "<mark>"}, {"special", true}}}}}};
  expect_error(ExitCode::kUnusable,
               {"tokenizer_config.json", "expect token \"<mark>\" at id 412, got 405", "save_pretrained"},
               [&] { load("smollm.json", config); });
}

TEST_F(TokenizerUseTest, ATokenizerModelCannotBeExtended) {
  const Json added = {{"added_tokens_decoder", {{"600", {{"content", "<|im_start|>"}, {"special", true}}}}}};
  expect_error(ExitCode::kUnusable,
               {"expected only tokens that the tokenizer.model has, got \"<|im_start|>\"", "tokenizer.json"},
               [&] { load("llama2.model", added); });
  EXPECT_EQ(load("llama2.model", {{"eos_token", "</s>"}, {"bos_token", "<s>"}})->size(), 600);
}

TEST_F(TokenizerUseTest, LlamasOwnAddPrefixSpaceIsRefusedWhereItDiffers) {
  const Json config = {{"tokenizer_class", "LlamaTokenizer"}, {"add_prefix_space", false}};
  for (const char* file : {"llama2.json", "llama2_first.json", "llama2.model"})
    expect_error(ExitCode::kUnusable,
                 {"expected add_prefix_space as the tokenizer has it, true, got false", "save_pretrained"},
                 [&] { load(file, config); });
  Json same = config;
  same["add_prefix_space"] = true;
  for (const char* file : {"llama2.json", "llama2_first.json", "llama2.model"})
    EXPECT_NO_THROW(load(file, same)) << file;
}

TEST_F(TokenizerUseTest, OtherIdsAreAnotherHash) {
  const std::string hash =
      load("gpt2.json", {{"eos_token", "<|endoftext|>"}, {"model_max_length", 512}})->hash();
  EXPECT_EQ(hash, load_tokenizer(style("gpt2.json"))->hash());
  EXPECT_NE(hash, load("gpt2.json", {{"pad_token", "<new>"}})->hash());
  EXPECT_NE(hash, load("gpt2.json", {{"add_prefix_space", true}})->hash());
}

TEST_F(TokenizerUseTest, TokensThatOnlyFilesBesideNameAreListed) {
  const auto tokenizer =
      load("smollm.json", {{"pad_token", "<pad>"}, {"additional_special_tokens", {"<mark>"}}});
  EXPECT_EQ(tokenizer->info().added_beside, std::vector<std::string>{"<mark>"});  // it has a <pad>
  EXPECT_NE(note_added_beside(*tokenizer).find(". 1 of them, such as \"<mark>\", is only in"),
            std::string::npos);
  EXPECT_EQ(note_added_beside(*load("smollm.json", Json::object())), "");
}

TEST_F(TokenizerUseTest, DamagedFilesNameTheFile) {
  write_text(dir_ / "tokenizer.json", read_file(style("smollm.json")));
  const auto damaged = [&](const char* file, const std::string& text, const char* what) {
    write_text(dir_ / file, text);
    expect_error(ExitCode::kUnusable, {file, what}, [&] { load_tokenizer(dir_ / "tokenizer.json"); });
    std::filesystem::remove(dir_ / file);
  };
  damaged("special_tokens_map.json", "{\"eos_token\": ", "not valid JSON at byte");
  damaged("special_tokens_map.json", R"({"eos_token": 3})", "eos_token");
  damaged("added_tokens.json", R"({"<mark>": -1})", "the id of token \"<mark>\"");
  damaged("added_tokens.json", "[]", "not an object");
  damaged("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "a"}}})", "must be an id");
  damaged("tokenizer_config.json", R"({"add_prefix_space": "yes"})", "add_prefix_space");
}

TEST_F(TokenizerUseTest, AVocabularyNeedsItsMergesAndAClassThatIsKnown) {
  write_text(dir_ / "vocab.json", SortedJson::parse(read_file(style("gpt2.json")))["model"]["vocab"].dump());
  const auto refused = [&](const char* file, std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { load_tokenizer(dir_ / file); });
  };
  refused("vocab.json", {"has the tokens only", "merges.txt"});
  write_text(dir_ / "merges.txt", "#version: 0.2\na r\na r e\n");
  refused("merges.txt", {"name the vocab.json beside it"});
  refused("vocab.json", {"expected two tokens with a space between them in line 3", "got \"a r e\""});
  write_text(dir_ / "merges.txt", "#version: 0.2\r\na r\r\n");
  EXPECT_EQ(load_tokenizer(dir_ / "vocab.json")->encode("ar").size(), 1u);
  write_text(dir_ / "tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  refused("vocab.json", {"a vocab.json with tokenizer_class RobertaTokenizer", "not supported"});
}

TEST_F(TokenizerUseTest, MegatronsNamesOfVocabularyAndMergesAreRead) {
  const Json one = {{"style", "gpt2"}, {"vocab", true}, {"beside", Json::object()}};
  const std::string path = write_folder(dir_ / "in", one);
  const auto wanted = load_tokenizer(path)->encode("the learning rate");
  std::filesystem::rename(path, dir_ / "gpt2-vocab.json");
  std::filesystem::rename(dir_ / "in/merges.txt", dir_ / "gpt2-merges.txt");
  EXPECT_EQ(load_tokenizer(dir_ / "gpt2-vocab.json")->encode("the learning rate"), wanted);
}

TEST_F(TokenizerUseTest, AFolderIsAnsweredWithTheFileInIt) {
  expect_error(ExitCode::kUnusable, {"without a tokenizer", "tokenizer.json, tokenizer.model, vocab.json"},
               [&] { load_tokenizer(dir_.path()); });
  write_text(dir_ / "vocab.json", "{}");
  expect_error(ExitCode::kUnusable, {"name the file in it: \"" + dir_.path() + "/vocab.json\""},
               [&] { load_tokenizer(dir_.path()); });
}

TEST_F(TokenizerUseTest, ATiktokenFileIsNamed) {
  write_text(dir_ / "tokenizer.model", "IQ== 0\nIg== 1\nIw== 2\n");
  expect_error(ExitCode::kUnusable, {"tokenizer.model is a file of tiktoken", "Take the tokenizer.json"},
               [&] { load_tokenizer(dir_ / "tokenizer.model"); });
}

}  // namespace
}  // namespace tycho
