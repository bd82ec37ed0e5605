// The lines of the walk-throughs and of README's first screen that name data, tokenizers and models of the
// hub, as the pages show them, against the stand-in.
#include <chrono>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/host/shell.h"
#include "tests/trainer/hub/hub_fixture.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::HubFixture;

std::string bytes_of(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

/// Returns the blocks of a page that its comments leave to this test.
std::vector<std::string> hub_lines(const std::string& page) {
  const std::string text = bytes_of(fs::path(TYCHO_SOURCE_DIR) / page);
  const std::string mark = "hub_walkthroughs_test runs it against a stand-in -->\n```sh\n";
  std::vector<std::string> blocks;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    at += mark.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

std::string documents(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += "{\"text\": \"Story " + std::to_string(i) + " begins, goes on for a while, and ends.\"}\n";
  return lines;
}

std::string conversations(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += "{\"prompt\": \"Is " + std::to_string(i) + " a number?\", \"response\": \"It is.\"}\n";
  return lines;
}

class HubWalkthroughs : public HubFixture {
 protected:
  HubWalkthroughs() {
    char pattern[] = "/tmp/tycho-walk-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    const std::string golden = TYCHO_SOURCE_DIR "/tests/golden/";
    const std::string tokenizer = bytes_of(golden + "tokenizer/whole.json");
    for (const char* model : {"EleutherAI/gpt-neox-20b", "openai-community/gpt2"})
      server_.add_file(std::string("models/") + model, "tokenizer.json", tokenizer, true);
    server_.add_file("models/meta-llama/Llama-3.1-8B", "tokenizer.json",
                     bytes_of(golden + "tokenizer_styles/llama3.json"));
    server_.moved["models/gpt2"] = "models/openai-community/gpt2";
    server_.moved["datasets/wikitext"] = "datasets/Salesforce/wikitext";
    add_data();
    const std::regex length("\"max_seq_len\": [0-9]+");
    for (const auto& entry : fs::directory_iterator(golden + "hf/mpt")) {
      const std::string name = entry.path().filename();
      if (name != "expected.safetensors")
        server_.add_file("models/mosaicml/mpt-7b", name,
                         std::regex_replace(bytes_of(entry.path()), length, "\"max_seq_len\": 2048"),
                         name.ends_with(".safetensors"));
    }
    server_.add_file("models/mosaicml/mpt-7b", "tokenizer.json", tokenizer);
    for (const char* part : {"recipes", "containers"})
      fs::create_symlink(fs::path(TYCHO_SOURCE_DIR) / part, folder_ / part);
    fs::create_directories(folder_ / "data");
    std::ofstream(folder_ / "data/tycho.sqsh") << "an image";
    add_programs();
  }
  ~HubWalkthroughs() override { fs::remove_all(folder_); }

  void add_data() {
    const std::string c4 = "datasets/allenai/c4";
    server_.add_file(c4, "README.md",
                     "---\nconfigs:\n- config_name: en\n  data_files:\n  - split: train\n    path: "
                     "en/c4-train.*.json\n  - split: validation\n    path: en/c4-validation.*.json\n"
                     "- config_name: de\n  data_files: de/*.json\n---\n");
    for (const char* split : {"train", "validation"})
      server_.add_file(c4, "en/c4-" + std::string(split) + ".00000-of-00001.json", documents(1500), true);
    server_.add_file(c4, "de/c4-train.00000-of-00001.json", "not read", true);
    const std::string wikitext = "datasets/Salesforce/wikitext";
    std::string card = "---\nconfigs:\n";
    for (const char* name : {"wikitext-103-v1", "wikitext-2-raw-v1"}) {
      card += "- config_name: " + std::string(name) + "\n  data_files:\n  - split: train\n    path: " + name +
              "/train-*\n";
      server_.add_file(wikitext, std::string(name) + "/train-00000-of-00001.jsonl", documents(1500), true);
    }
    server_.add_file(wikitext, "README.md", card + "---\n");
    for (const char* split : {"train", "test"})
      server_.add_file("datasets/mosaicml/dolly_hhrlhf", "data/" + std::string(split) + ".jsonl",
                       conversations(20), true);
  }

  /// Puts stand-ins for Slurm's commands, which run the script here, beside tycho.
  void add_programs() {
    fs::create_directories(folder_ / "bin");
    fs::create_symlink(TYCHO_PROGRAM, folder_ / "bin/tycho");
    std::ofstream(folder_ / "bin/sbatch")
        << "#!/bin/bash\nwhile [[ $1 == -* ]]; do [[ $1 != -p ]] || shift; shift; done\nexec bash \"$@\"\n";
    std::ofstream(folder_ / "bin/srun") << "#!/bin/bash\nwhile [[ $1 == -* ]]; do shift; done\nexec \"$@\"\n";
    for (const char* name : {"bin/sbatch", "bin/srun"}) fs::permissions(folder_ / name, fs::perms::owner_all);
  }

  /// Runs lines of a page in the folder, where /data is a folder of the test.
  Outcome follow(const std::string& lines) {
    const std::string here =
        std::regex_replace(lines, std::regex("(^|[ =\n])/data\\b"), "$1" + (folder_ / "data").string());
    return shell("PATH=" + (folder_ / "bin").string() + ":$PATH; cd " + folder_.string() + "\nset -e\n" +
                 here + "\n:");
  }
  void follow_page(const std::string& page, size_t expected) {
    const std::vector<std::string> blocks = hub_lines(page);
    ASSERT_EQ(blocks.size(), expected) << page;
    for (const std::string& block : blocks) {
      const Outcome outcome = follow(block);
      EXPECT_EQ(outcome.code, 0) << block << outcome.output;
    }
  }
  void expect_split(const std::string& split) {
    EXPECT_TRUE(fs::exists(folder_ / split / "index.json")) << split;
  }

  fs::path folder_;
};

TEST_F(HubWalkthroughs, LlmFoundryOnSlurmConvertsC4) {
  const std::vector<std::string> blocks = hub_lines("docs/walkthroughs/foundry-slurm.md");
  ASSERT_EQ(blocks.size(), 2);
  const Outcome line = follow(blocks[0]);
  ASSERT_EQ(line.code, 0) << line.output;
  for (const char* split : {"train", "val"}) expect_split("data/my-copy-c4/" + std::string(split));
  const std::string shards = bytes_of(folder_ / "data/my-copy-c4/train/index.json");
  fs::remove_all(folder_ / "data/my-copy-c4");
  ::unsetenv("HF_HOME");
  const Outcome job = follow(blocks[1]);
  ::setenv("HF_HOME", home_.c_str(), 1);
  ASSERT_EQ(job.code, 0) << job.output;
  for (const char* split : {"train", "val"}) expect_split("data/my-copy-c4/" + std::string(split));
  EXPECT_EQ(bytes_of(folder_ / "data/my-copy-c4/train/index.json"), shards);
  EXPECT_TRUE(fs::exists(folder_ / "data/huggingface"));
}

TEST_F(HubWalkthroughs, LlmFoundryOnKubernetesConvertsTheSmallSplits) {
  follow_page("docs/walkthroughs/foundry-kubernetes.md", 1);
  for (const char* split : {"train_small", "val_small"})
    expect_split("data/my-copy-c4/" + std::string(split));
}

TEST_F(HubWalkthroughs, TorchTitanConvertsC4WithLlamasTokenizer) {
  server_.token = "hf_verysecretvalue";
  ::setenv("HF_TOKEN", server_.token.c_str(), 1);
  follow_page("docs/walkthroughs/torchtitan-slurm.md", 1);
  ::unsetenv("HF_TOKEN");
  expect_split("data/c4-llama3/train");
}

TEST_F(HubWalkthroughs, NanotronConvertsWikitextByNamesWithoutAnOwner) {
  follow_page("docs/walkthroughs/nanotron-slurm.md", 1);
  expect_split("data/train");
  EXPECT_TRUE(fs::exists(folder_ / "data/tokenizer.json"));
}

TEST_F(HubWalkthroughs, EightNodesConvertC4AndFetchWhatTheyFinetune) {
  follow_page("docs/walkthroughs/foundry-eight-h100.md", 2);
  expect_split("data/my-copy-c4/val");
  const int before = server_.num_requests();
  const Outcome checked = follow(
      "export TYCHO_MODEL=hf://mosaicml/mpt-7b TYCHO_DATA=hf://datasets/mosaicml/dolly_hhrlhf\n"
      "tycho config recipes/finetune/mpt-7b.lua\n");
  EXPECT_EQ(checked.code, 0) << checked.output;
  EXPECT_CONTAINS(checked.output, "hf://datasets/mosaicml/dolly_hhrlhf@");
  EXPECT_EQ(server_.num_requests(), before);
}

TEST_F(HubWalkthroughs, ReadmesFirstScreenTrains) {
  const std::vector<std::string> blocks = hub_lines("README.md");
  ASSERT_EQ(blocks.size(), 1);
  EXPECT_LT(bytes_of(TYCHO_SOURCE_DIR "/README.md").find(blocks[0]), 2000);
  std::string lines = blocks[0];
  ASSERT_EQ(lines.back(), '\n');
  lines.pop_back();
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = follow(
      lines +
      " model.width=32 model.heads=2 model.layers=1 model.ffn_width=64 global_batch=2sp max_duration=3ba\n");
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "done, 3 steps");
  EXPECT_CONTAINS(bytes_of(folder_ / "my-model/runs/first/recipe.lua"), "hf://openai-community/gpt2@");
  EXPECT_CONTAINS(bytes_of(folder_ / "my-model/README.md"),
                  "hf://datasets/Salesforce/wikitext/wikitext-2-raw-v1");
  std::printf("tycho init and 3 steps on data of the stand-in: %.1f s\n", time.count());
}

}  // namespace
}  // namespace tycho
