// Conversions into one folder at the same time: one is published, the others leave nothing.
#include "trainer/data/prepare/publication.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/convert_chat.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

/// Runs another conversion to its end, in a process of its own, when the first work folder is made.
class RacedFiles : public FileOps {
 public:
  explicit RacedFiles(std::function<void()> other) : other_(std::move(other)) {}
  void make_dir(const std::string& path) override {
    FileOps::make_dir(path);
    if (path.find(kPartial) == std::string::npos || !other_) return;
    const std::function<void()> other = std::exchange(other_, nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        other();
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

 private:
  std::function<void()> other_;
};

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Publication, TheSlowerOfTwoConversionsSaysSoAndLeavesNothing) {
  TempDir temp;
  write_text(temp / "a.jsonl", "{\"text\": \"one two three\"}\n{\"text\": \"four five six\"}\n");
  ConvertOptions options{.inputs = {temp / "a.jsonl"},
                         .tokenizer = golden("tokenizer/whole.json"),
                         .out_dir = temp / "out",
                         .val_fraction = 0.5,
                         .concat_tokens = 2,
                         .eos_text = "<|endoftext|>"};
  RacedFiles files([&] { convert_text(options); });
  expect_error(ExitCode::kUsage, {"out/train", "another conversion has written meanwhile", "removed"},
               [&] { convert_text(options, files); });
  EXPECT_EQ(entries_of(temp / "out"), (std::vector<std::string>{"tokenizer.json", "train", "val"}));
  EXPECT_GT(dataset_info(temp / "out").at(0).samples, 0);
}

TEST(Publication, SoDoesTheSlowerOneOfConversations) {
  TempDir temp;
  write_text(temp / "a.jsonl", "{\"prompt\": \"one\", \"response\": \"two\"}\n");
  ConvertChatOptions options;
  options.inputs = {temp / "a.jsonl"};
  options.splits.out_dir = temp / "out";
  RacedFiles files([&] { convert_chat(options); });
  expect_error(ExitCode::kUsage, {"out/train", "another conversion has written meanwhile"},
               [&] { convert_chat(options, files); });
  EXPECT_EQ(entries_of(temp / "out"), std::vector<std::string>{"train"});
}

}  // namespace
}  // namespace tycho
