// Damage: every flipped bit, cut, and swapped file is found before its bytes are used, and named.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/base/hash.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

constexpr char kShard[] = "rank-00000.safetensors";

void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class DamageTest : public ::testing::Test {
 protected:
  const TempDir dir_;
  CheckpointStore store_{real_files(), dir_.path(), 0, 1};
  const CheckpointInfo old_ = save_step(store_, 1), info_ = save_step(store_, 2);

  /// What a loader that is told this folder comes to.
  Failure load() const {
    return failure_of([&] {
      const CheckpointInfo found = find_checkpoint(info_.path);
      CheckpointReader(found).verify();
      if (const std::string wrong = differences(found); !wrong.empty()) throw std::logic_error(wrong);
    });
  }
  void expect_found(const std::string& file, const std::string& where) const {
    const Failure failure = load();
    EXPECT_EQ(failure.code, ExitCode::kUnusable) << where;
    EXPECT_TRUE(failure.says(info_.path + "/" + file)) << where << ": " << failure.message;
  }
};

TEST_F(DamageTest, FlippedBitsAreFoundInEveryFile) {
  ASSERT_EQ(load().code, ExitCode::kOk);
  std::mt19937 random(7);
  for (const std::string file : {kShard, "tokenizer.json", "COMMIT"}) {
    const std::string path = info_.path + "/" + file, good = read_file(path);
    for (int trial = 0; trial < 200; ++trial) {
      std::string bad = good;
      const size_t at = random() % bad.size();
      bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      overwrite(path, bad);
      expect_found(file, file + " byte " + std::to_string(at));
    }
    overwrite(path, good);
    ASSERT_EQ(load().code, ExitCode::kOk);
  }
}

TEST_F(DamageTest, TheMessageNamesBothHashes) {
  const std::string path = info_.path + "/" + kShard;
  std::string bytes = read_file(path);
  const std::string recorded = hash_hex(bytes);
  EXPECT_EQ(info_.manifest["files"][0]["xxh3_128"], recorded);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  overwrite(path, bytes);
  const CheckpointReader reader(find_checkpoint(info_.path));
  char room[17 * 33 * 4];
  const Failure failure = failure_of([&] { reader.read("model.t12", room, sizeof room); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says(path) && failure.says(recorded) && failure.says(hash_hex(bytes)))
      << failure.message;
}

TEST_F(DamageTest, CutFilesAreFound) {
  for (const std::string file : {kShard, "tokenizer.json", "COMMIT"}) {
    const std::string path = info_.path + "/" + file, good = read_file(path);
    for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, good.size() / 2, good.size() - 1}) {
      overwrite(path, good.substr(0, size));
      expect_found(file, file + " cut to " + std::to_string(size));
    }
    overwrite(path, good + good);
    expect_found(file, file + " doubled");
    overwrite(path, std::string(good.size(), '\0'));
    expect_found(file, file + " zeroed");
    fs::remove(path);
    EXPECT_EQ(load().code, ExitCode::kUnusable);
    overwrite(path, good);
  }
}

TEST_F(DamageTest, FilesOfAnotherCheckpointAreFound) {
  ASSERT_EQ(fs::file_size(old_.path + "/" + kShard), fs::file_size(info_.path + "/" + kShard));
  for (const std::string file : {kShard, "tokenizer.json"}) {
    const std::string good = read_file(info_.path + "/" + file);
    overwrite(info_.path + "/" + file, read_file(old_.path + "/" + file));
    expect_found(file, "old " + file);
    overwrite(info_.path + "/" + file, good);
  }
}

TEST_F(DamageTest, AFileThatShrinksWhileItIsReadIsAnError) {
  const CheckpointReader reader(find_checkpoint(info_.path));
  fs::resize_file(info_.path + "/" + kShard, 4200);
  char room[17 * 33 * 4];
  const Failure failure = failure_of([&] { reader.read("model.t12", room, sizeof room); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("ends early")) << failure.message;
}

TEST_F(DamageTest, WhatIsNotThereIsNamed) {
  const CheckpointReader reader(info_);
  EXPECT_TRUE(reader.has("model.t1"));
  EXPECT_FALSE(reader.has("model.t99"));
  EXPECT_TRUE(reader.has_file("tokenizer.json"));
  EXPECT_FALSE(reader.has_file("vocab.txt"));
  EXPECT_TRUE(failure_of([&] { reader.describe("model.t99"); }).says("no tensor 'model.t99' among its 13"));
  EXPECT_TRUE(failure_of([&] { reader.read_text_file("vocab.txt"); }).says("no file 'vocab.txt'"));
  char room[8];
  EXPECT_TRUE(
      failure_of([&] { reader.read("model.t1", room, 8); }).says("has 2 bytes, but the buffer has 8"));
}

}  // namespace
}  // namespace tycho
