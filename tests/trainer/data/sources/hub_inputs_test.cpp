// Data sets on the stand-in hub, converted while they are fetched.
#include "trainer/data/sources/hub_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <regex>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/hub/hub_fixture.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/convert_chat.h"
#include "trainer/data/sources/lent_file.h"

namespace tycho {
namespace {

using testing::golden;
using testing::HubFixture;
using testing::SeenRequest;
using testing::ServerReply;
using testing::TempDir;
using testing::write_text;

constexpr const char* kCard =
    "---\nconfigs:\n- config_name: en\n  data_files:\n  - split: train\n    path: en/c4-train.*.json\n"
    "  - split: validation\n    path: en/c4-validation.*.json\n- config_name: de\n  data_files: "
    "de/*.json\n---\n";

std::string documents(int first, int count) {
  std::string lines;
  for (int i = first; i < first + count; ++i)
    lines +=
        fmt::format("{{\"text\": \"Story {}: it begins, goes on for {} words, and ends.\"}}\n", i, i * i);
  return lines;
}

/// A repository like C4's, and the same files in a folder.
class HubInputsTest : public HubFixture {
 protected:
  HubInputsTest() {
    add("README.md", kCard);
    for (int i = 0; i < 3; ++i)
      add(fmt::format("en/c4-train.0000{}-of-00003.json", i), documents(100 * i, 60), true);
    add("en/c4-validation.00000-of-00001.json", documents(1000, 40), true);
    add("de/c4-train.json", documents(2000, 5), true);
    options_.tokenizer = golden("tokenizer/whole.json");
    options_.out_dir = temp_ / "out";
    options_.eos_text = "<|endoftext|>";
    options_.concat_tokens = 32;
    options_.inputs = {"hf://datasets/allenai/c4"};
    options_.rules.configuration = "en";
    options_.rules.takes_unsplit = true;
  }

  void add(const std::string& path, const std::string& text, bool is_large = false) {
    server_.add_file("datasets/allenai/c4", path, text, is_large);
    write_text(temp_ / ("folder/" + path), text);
  }

  /// Returns the shards and the index of a split.
  static std::vector<std::string> bytes_of(const std::string& dir) {
    std::vector<std::string> names, bytes;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names)
      if (name.ends_with(".mds") || name.ends_with("index.json")) bytes.push_back(read_file(name));
    return bytes;
  }

  std::vector<std::string> from_folder(ConvertOptions options) const {
    options.inputs = {temp_ / "folder"};
    options.out_dir = temp_ / "local";
    convert_text(options);
    return bytes_of(options.out_dir + "/" + options.split);
  }

  std::vector<std::string> left_in_out() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(options_.out_dir))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  int num_blobs() const {
    int count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(home_))
      count += entry.path().filename().string().starts_with("c4-");
    return count;
  }

  TempDir temp_;
  ConvertOptions options_;
};

TEST_F(HubInputsTest, ASplitOfAConfigurationGivesTheBytesThatAFolderGives) {
  const ConvertResult result = convert_text(options_);
  EXPECT_EQ(result.splits.at(0).documents, 180);
  EXPECT_EQ(bytes_of(temp_ / "out/train"), from_folder(options_));
  EXPECT_EQ(left_in_out(), (std::vector<std::string>{"tokenizer.json", "train"}));
  EXPECT_EQ(num_blobs(), 0) << "files are not kept";
  EXPECT_NE(result.notes.at(0).find("split train, configuration en, 3 files"), std::string::npos)
      << result.notes.at(0);
}

TEST_F(HubInputsTest, ANameMayEndWithAConfiguration) {
  const std::string words = "---\nconfigs:\n- config_name: stories\n  data_files: en/c4-train.00001-*\n---\n";
  server_.add_file("datasets/acme/named", "README.md", words);
  for (int i = 0; i < 3; ++i)
    server_.add_file("datasets/acme/named", fmt::format("en/c4-train.0000{}-of-00003.json", i),
                     documents(100 * i, 60), true);
  const auto files = [](const std::string& name) {
    std::vector<std::string> paths;
    for (const InputFile& file : find_hub_files(name, {}).files)
      paths.push_back(file.path.substr(file.path.rfind('/')));
    return paths;
  };
  EXPECT_EQ(files("hf://datasets/acme/named/stories"),
            std::vector<std::string>{"/c4-train.00001-of-00003.json"});
  EXPECT_EQ(files("hf://datasets/acme/named/en").size(), 3u) << "a folder";
  expect_failure([&] { files("hf://datasets/acme/named/tales"); }, ExitCode::kUnusable,
                 "no such file, folder or configuration");
  expect_failure([&] { files("hf://datasets/allenai/c4"); }, ExitCode::kUnusable,
                 "as hf://datasets/allenai/c4/en: en, de");
  EXPECT_EQ(files("hf://datasets/allenai/c4/en").size(), 3u) << "validation is another split";
}

TEST_F(HubInputsTest, KeptFilesAreUsedAgainWithoutARequest) {
  options_.keeps_fetched = true;
  convert_text(options_);
  EXPECT_EQ(num_blobs(), 3);
  const int asked = server_.num_requests();
  options_.out_dir = temp_ / "again";
  options_.keeps_fetched = false;
  convert_text(options_);
  EXPECT_EQ(server_.num_requests(), asked);
  EXPECT_EQ(bytes_of(temp_ / "again/train"), bytes_of(temp_ / "out/train"));
}

TEST_F(HubInputsTest, TheBeginningOfASplitEndsAtItsSamples) {
  options_.split = "val_small";
  options_.rules.split = "val";
  options_.max_samples = 7;
  const ConvertResult result = convert_text(options_);
  EXPECT_EQ(result.splits.at(0).samples, 7);
  for (const std::string& request : server_.requests())
    EXPECT_EQ(request.find("c4-train"), std::string::npos) << request;
}

TEST_F(HubInputsTest, AFailureHalfWayPublishesNothingAndTheNextCallGoesOn) {
  options_.threads = options_.rules.downloads = 1;
  const std::string blocked =
      fmt::format("{}/.hub-files.partial-{}/2-c4-train.00002-of-00003.json", options_.out_dir, ::getpid());
  server_.set_faults(
      [&](const SeenRequest& request) -> std::optional<ServerReply> {
        if (request.path.find("00001-of-00003") != std::string::npos)
          std::filesystem::create_directories(blocked);  // the next file cannot be written, as on a full disk
        return std::nullopt;
      },
      nullptr);
  expect_failure([&] { convert_text(options_); }, ExitCode::kStorage, "the same command goes on");
  EXPECT_FALSE(std::filesystem::exists(temp_ / "out/train"));
  EXPECT_FALSE(std::filesystem::exists(blocked));
  server_.set_faults(nullptr, nullptr);
  const auto num_of = [&](const char* name) {
    const auto all = server_.requests();
    return std::count_if(all.begin(), all.end(),
                         [&](const std::string& one) { return one.find(name) != std::string::npos; });
  };
  const auto first = num_of("00000-of-00003");
  convert_text(options_);
  EXPECT_EQ(num_of("00000-of-00003"), first) << "a file that was converted is not fetched again";
  EXPECT_EQ(bytes_of(temp_ / "out/train"), from_folder(options_));
  EXPECT_EQ(left_in_out(), (std::vector<std::string>{"tokenizer.json", "train"}));
}

TEST_F(HubInputsTest, DamagedBytesPublishNothing) {
  auto& file = server_.add("datasets/allenai/c4").files["en/c4-train.00001-of-00003.json"];
  file.bytes[3] ^= 1;
  expect_failure([&] { convert_text(options_); }, ExitCode::kUnusable, "hash");
  EXPECT_FALSE(std::filesystem::exists(temp_ / "out/train"));
}

TEST_F(HubInputsTest, WrongNamesAreAnsweredWithThoseThatExist) {
  options_.rules.configuration = "fr";
  expect_failure([&] { convert_text(options_); }, ExitCode::kUnusable, "it has: en, de");
  options_.rules.configuration = "";
  expect_failure([&] { convert_text(options_); }, ExitCode::kUnusable,
                 "or as hf://datasets/allenai/c4/en: en, de");
  options_.rules.configuration = "en";
  options_.split = options_.rules.split = "test";
  expect_failure([&] { convert_text(options_); }, ExitCode::kUnusable, "got train, validation");
  options_.inputs = {"hf://datasets/allenai/c4/fr"};
  expect_failure([&] { convert_text(options_); }, ExitCode::kUnusable,
                 "no such file, folder or configuration");
  server_.add_file("datasets/a/script", "script.py", "print()");
  options_.inputs = {"hf://datasets/a/script"};
  expect_failure([&] { convert_text(options_); }, ExitCode::kUnusable, "@refs/convert/parquet");
}

TEST_F(HubInputsTest, FilesFoldersAndPatternsOfARepositoryCanBeNamed) {
  const auto names = [](const std::string& name) {
    std::vector<std::string> found;
    for (const InputFile& file : find_hub_files(name, {.takes_unsplit = true}).files)
      found.push_back(file.path.substr(file.path.rfind('/') + 1));
    return found;
  };
  EXPECT_EQ(names("hf://datasets/allenai/c4/de"), std::vector<std::string>{"c4-train.json"});
  EXPECT_EQ(names("hf://datasets/allenai/c4/de/c4-train.json"), std::vector<std::string>{"c4-train.json"});
  EXPECT_EQ(names("hf://datasets/allenai/c4/en/*validation*"),
            std::vector<std::string>{"c4-validation.00000-of-00001.json"});
}

TEST_F(HubInputsTest, ParquetIsReadFromTheHub) {
  for (const auto& entry : std::filesystem::directory_iterator(golden("parquet")))
    if (entry.path().filename().string().find("plain") != std::string::npos &&
        entry.path().extension() == ".parquet") {
      server_.add_file("datasets/a/b", "data/train-00000-of-00001.parquet", read_file(entry.path()), true);
      const InputFiles files = find_input_files({"hf://datasets/a/b"}, {.passing_folder = temp_ / "passing"});
      ASSERT_EQ(files.files.size(), 1u);
      EXPECT_EQ(files.files[0].format, TextFormat::kParquet);
      const LentFile lent(files.files[0]);
      EXPECT_EQ(read_file(lent.path()), read_file(entry.path()));
      return;
    }
  FAIL() << "no Parquet file among the goldens";
}

TEST_F(HubInputsTest, ConversationsAreConvertedFromTheHub) {
  const std::string rows =
      "{\"prompt\": \"a\", \"response\": \"b\"}\n{\"prompt\": \"c\", \"response\": \"d\"}\n";
  server_.add_file("datasets/a/chat", "train.jsonl", rows, true);
  ConvertChatOptions options{.inputs = {"hf://datasets/a/chat"}, .splits = {.out_dir = temp_ / "chat"}};
  EXPECT_EQ(convert_chat(options).splits.at(0).samples, 2);
  const InputFiles files = find_input_files({"hf://datasets/a/chat"}, {.rows_only = true});
  EXPECT_EQ(files.files.at(0).format, TextFormat::kJsonl);
}

}  // namespace
}  // namespace tycho
