// Records the launches of a step of each shipped recipe on a pretended H100 (tests/golden/launches), and
// compares the peak of its memory with what `tycho plan` says. To write the lists anew:
//   TYCHO_UPDATE_GOLDENS=1 build/cuda/bin/standin_launches_test && git diff tests/golden/launches
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/host/shell.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGoldens = TYCHO_SOURCE_DIR "/tests/golden/launches/";
/// Memory and multiprocessors of an H100 of 80 GB.
constexpr const char* kH100 = "export TYCHO_STANDIN_MB=81079 TYCHO_STANDIN_SMS=132 TYCHO_STANDIN_GPUS=8; ";

struct Case {
  friend std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }
  std::string name;    // of its list
  std::string recipe;  // in recipes/
  int ranks = 1;
  std::string pins = {};
};

const std::vector<Case> kCases = {
    {"mpt-125m", "mpt-125m"},
    {"mpt-125m-any-order", "mpt-125m", 1, "attention.deterministic=false"},
    {"mpt-125m-flash3", "mpt-125m", 1, "attention.flash=3"},
    {"mpt-350m", "mpt-350m"},
    {"mpt-760m", "mpt-760m"},
    {"mpt-1b", "mpt-1b"},
    {"mpt-3b", "mpt-3b", 8},
    {"mpt-7b", "mpt-7b", 8},
    {"mpt-13b", "mpt-13b", 16},
    {"mpt-30b", "mpt-30b", 32},
    {"mpt-70b", "mpt-70b", 64},
    {"gpt2-124m", "gpt2-124m"},
    {"gpt2-350m", "gpt2-350m"},
    {"gpt2-774m", "gpt2-774m"},
    {"gpt2-1.5b", "gpt2-1.5b"},
    {"llama-1b", "llama-1b"},
    {"llama-1b-2048", "llama-1b", 1, "seq_len=2048 micro_batch=4sp global_batch=64sp"},
    {"llama-1b-2048-any-order", "llama-1b", 1,
     "seq_len=2048 micro_batch=4sp global_batch=64sp attention.deterministic=false"},
    {"llama-1b-2048-flash3", "llama-1b", 1,
     "seq_len=2048 micro_batch=4sp global_batch=64sp attention.flash=3"},
    {"llama-8b", "llama-8b", 8},
    {"llama-8b-any-order", "llama-8b", 8, "attention.deterministic=false"},
    {"llama-8b-flash3", "llama-8b", 8, "attention.flash=3"},
    {"llama-8b-fp8", "llama-8b", 8, "fp8.recipe=rowwise_with_gw_hp"},
    {"llama-8b-fp8-tensorwise", "llama-8b", 8, "fp8.recipe=tensorwise"},
    {"llama-8b-fp8-gather", "llama-8b", 8, "fp8.recipe=tensorwise fp8.gather=true"},
    {"llama-70b", "llama-70b", 64},
    {"gemma2", "gemma2", 8},
    {"gemma3", "gemma3", 8},
    {"granite", "granite", 8},
    {"ministral3", "ministral3", 8},
    {"mistral", "mistral", 8},
    {"olmo2", "olmo2", 8},
    {"olmo3", "olmo3", 8},
    {"phi3", "phi3", 8},
    {"qwen2", "qwen2", 8},
    {"qwen2-1.5b-any-order", "qwen2", 1,
     "preset=1.5b seq_len=1024 micro_batch=32sp global_batch=512sp attention.deterministic=false"},
    {"qwen3", "qwen3", 8},
    {"smollm2", "smollm2", 8},
    {"smollm3", "smollm3", 8},
};

/// A list: launches of a step in the order in which they first come, one line each.
struct Recorded {
  std::string launches;
  double peak = 0;
};

/// Bytes that a list's launches move.
double bytes_of(const std::string& launches) {
  std::istringstream in(launches);
  double sum = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    double count = 0, read = 0, written = 0;
    if (line.starts_with("#") || !(fields >> count >> read >> written)) continue;
    sum += count * (read + written);
  }
  return sum;
}

class Launches : public ShellTest, public ::testing::WithParamInterface<Case> {
 protected:
  static void SetUpTestSuite() {
    data_ = fs::temp_directory_path() / ("tycho-launches-" + std::to_string(getpid()));
    for (const auto& [split, rows] : {std::pair("train", 40'000), std::pair("val_small", 1'000)})
      write_split(data_ / split, rows);
    fs::create_directory_symlink(data_ / "train", data_ / "train_small");
  }
  static void TearDownTestSuite() { fs::remove_all(data_); }

  static void write_split(const fs::path& folder, int rows) {
    fs::create_directories(folder);
    MdsWriter writer(real_files(), folder, {.columns = {{"tokens", "ndarray:uint16"}}});
    const std::vector<uint16_t> tokens(256, 1);
    for (int i = 0; i < rows; ++i)
      writer.write({encode_mds_array(tokens.data(), static_cast<int64_t>(tokens.size()), sizeof(uint16_t))});
    writer.finish();
  }

  static std::string pins_of(const Case& one) {
    return " " + one.pins + " machine=h100 train_data.recut=true train_data.local_dir=" + data_.string() +
           (one.recipe.starts_with("mpt") ? " eval_data.val.recut=true" : "");
  }

  /// Bytes that LibTorch certainly allocates on such a GPU, by `tycho plan`.
  double planned_bytes(const Case& one) const {
    const Outcome outcome =
        here("TYCHO_DATA=" + data_.string() + " tycho plan " TYCHO_SOURCE_DIR "/recipes/" + one.recipe +
             ".lua" + pins_of(one) + " --ranks " + std::to_string(one.ranks) + " device=cuda --json");
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    double certain = 0;
    const Json plan = parse_json(outcome.output, "plan");
    for (const Json& item : plan.at("memory"))
      if (!item.at("is_estimate") && item.at("name") != "checkpoint copy")
        certain += item.at("num_bytes").get<double>();
    return certain;
  }

  /// Rank 0 of the recipe, two steps; the second one is returned.
  Recorded record(const Case& one) const {
    const std::string ranks = std::to_string(one.ranks), local = std::to_string(std::min(one.ranks, 8));
    // Nothing is computed, so any initial weights serve: drawing normal ones would take half of the time.
    const std::string recipe = (folder_ / "recipe.lua").string();
    std::ofstream(recipe) << "local r = require '" << one.recipe << "' :extend '" << one.recipe << "'\n"
                          << "r.init = require 'tycho'.init.define(function() return 0.01 end)\nreturn r\n";
    const std::string command =
        std::string(kH100) +
        "export TYCHO_FLASH_ATTN_3=" TYCHO_FLASH_3
        " TYCHO_STANDIN_ORDER=off TYCHO_STANDIN_ANY_ORDER=1 TYCHO_STANDIN_RECORD=" +
        (folder_ / "record").string() + " TYCHO_DATA=" + data_.string() +
        " TYCHO_PATH=" TYCHO_SOURCE_DIR
        "/recipes"
        "; export TYCHO_RANK=0 TYCHO_LOCAL_RANK=0 TYCHO_ADDRESS=127.0.0.1 TYCHO_PORT=20000 "
        "TYCHO_TOKEN=0123456789abcdef TYCHO_NUM_RANKS=" +
        ranks + " TYCHO_NUM_LOCAL_RANKS=" + local + "; tycho run --force " + recipe + pins_of(one) +
        " device=cuda threads=1 run_dir=" + (folder_ / "run").string();
    const Outcome outcome = here(command);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    if (outcome.code != 0) return {};
    const std::string all = read_file((folder_ / "record").string());
    const std::string step = "== step 2\n", peak = "== peak ";
    const size_t begin = all.find(step) + step.size(), end = all.find(peak);
    return {all.substr(begin, end - begin), std::stod(all.substr(end + peak.size()))};
  }

  static inline fs::path data_;
};

TEST_P(Launches, OfAStepAreThoseOfTheListAndTheirMemoryIsPlanned) {
  const Case& one = GetParam();
  const Recorded now = record(one);
  ASSERT_FALSE(now.launches.empty());
  const double planned = planned_bytes(one);
  EXPECT_LE(now.peak, 1.02 * planned);
  EXPECT_GE(now.peak, 0.9 * planned);
  if (std::getenv("TYCHO_SHOW_PEAKS") != nullptr)
    fmt::print("{}: peak {:.2f} GB, planned {:.2f} GB ({:.3f})\n", one.name, now.peak / 1e9, planned / 1e9,
               now.peak / planned);
  const std::string path = kGoldens + one.name + ".txt";
  const std::string wanted = fmt::format(
      "# rank 0 of {}, a step of recipes/{}.lua {}\n# count, bytes read and written, FLOPs, name\n{}",
      one.ranks, one.recipe, one.pins, now.launches);
  if (std::getenv("TYCHO_UPDATE_GOLDENS") != nullptr) {
    fs::create_directories(kGoldens);
    std::ofstream(path) << wanted;
    return;
  }
  const std::string golden = read_file(path);
  const double before = bytes_of(golden), after = bytes_of(wanted);
  EXPECT_LE(after, 1.02 * before) << "a step moves " << 100 * (after / before - 1) << " % more bytes";
  EXPECT_EQ(wanted, golden) << "TYCHO_UPDATE_GOLDENS=1 build/cuda/bin/standin_launches_test writes it anew";
}

INSTANTIATE_TEST_SUITE_P(Recipes, Launches, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace tycho
