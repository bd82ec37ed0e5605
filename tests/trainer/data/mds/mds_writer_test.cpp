// Shards byte for byte as mosaicml-streaming writes them.
#include "trainer/data/mds/mds_writer.h"

#include <cerrno>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/mds/mds_reader.h"

namespace tycho {
namespace {

using testing::bytes_of_number;
using testing::expect_error;
using testing::golden;
using testing::TempDir;

template <class T>
std::string counting(T from, size_t count) {
  std::vector<T> list(count);
  for (size_t i = 0; i < count; ++i) list[i] = static_cast<T>(from + static_cast<T>(i));
  return encode_mds_array(list.data(), static_cast<int64_t>(count), sizeof(T));
}

class MdsWriterTest : public ::testing::Test {
 protected:
  /// Writes single-column samples and compares every file with what mosaicml-streaming wrote for them.
  void expect_golden(const std::string& name, MdsWriterOptions options,
                     const std::vector<std::vector<std::string>>& samples) {
    const std::string dir = temp_ / name;
    std::filesystem::create_directory(dir);
    MdsWriter writer(real_files(), dir, std::move(options));
    for (const auto& sample : samples) writer.write(sample);
    writer.finish();
    EXPECT_EQ(writer.num_samples(), static_cast<int64_t>(samples.size()));
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(golden("mds/" + name))) {
      const std::string file = entry.path().filename();
      EXPECT_EQ(read_file(dir + "/" + file), read_file(entry.path())) << name << "/" << file;
      ++files;
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir), {}), files);
  }
  TempDir temp_;
};

TEST_F(MdsWriterTest, WritesTheBytesThatStreamingWrites) {
  const std::vector<int32_t> a = {1, 2, 3}, b = {4, 5};
  expect_golden("two_samples", {.columns = {{"tokens", "ndarray:int32"}}, .hashes = {}},
                {{encode_mds_array(a.data(), 3, 4)}, {encode_mds_array(b.data(), 2, 4)}});
  expect_golden("text_and_id", {.columns = {{"text", "str"}, {"id", "int"}}, .hashes = {}},
                {{bytes_of_number<int64_t>(7), "ab"}, {bytes_of_number<int64_t>(-1), ""}});
  std::vector<std::vector<std::string>> many, half;
  for (int32_t i = 0; i < 11; ++i) many.push_back({counting<int32_t>(i, 10)});
  expect_golden("shards",
                {.columns = {{"tokens", "ndarray:int32"}}, .size_limit = 400, .hashes = {"xxh3_128"}}, many);
  expect_golden("long_samples", {.columns = {{"tokens", "ndarray:int32"}}, .hashes = {}},
                {{counting<int32_t>(0, 300)}, {counting<int32_t>(1, 300)}});
  for (uint16_t i = 0; i < 5; ++i) half.push_back({counting<uint16_t>(i, 10)});
  expect_golden("uint16", {.columns = {{"tokens", "ndarray:uint16"}}, .hashes = {}}, half);
}

TEST_F(MdsWriterTest, ASampleLargerThanTheLimitGetsItsOwnShard) {
  MdsWriter writer(real_files(), temp_.path(), {.columns = {{"x", "bytes"}}, .size_limit = 300});
  for (const size_t size : {10, 5000, 10}) writer.write({std::string(size, 'x')});
  writer.finish();
  EXPECT_EQ(writer.num_shards(), 3);
  MdsReader reader(read_mds_index(temp_.path()));
  EXPECT_EQ(reader.read(1)[0].size(), 5000u);
}

TEST_F(MdsWriterTest, RefusesValuesThatDoNotFit) {
  MdsWriter writer(real_files(), temp_.path(), {.columns = {{"id", "int"}}});
  EXPECT_THROW(writer.write({"x"}), Error);
  EXPECT_THROW(writer.write({}), Error);
  EXPECT_THROW(MdsWriter(real_files(), temp_.path(), {.columns = {{"id", "pkl"}}}), Error);
  EXPECT_THROW(MdsWriter(real_files(), temp_.path(), {.columns = {{"id", "ndarray:int33"}}}), Error);
  EXPECT_THROW(MdsWriter(real_files(), temp_.path(), {.columns = {{"id", "ndarray:int32:0,2"}}}), Error);
}

TEST_F(MdsWriterTest, RefusesUnknownCompressionsAndChecksums) {
  const auto refuses = [&](MdsWriterOptions options, std::string_view part) {
    options.columns = {{"id", "int"}};
    expect_error(options.hashes.size() == 2 ? ExitCode::kFailure : ExitCode::kUnusable, {part},
                 [&] { MdsWriter(real_files(), temp_.path(), options); });
  };
  refuses({.columns = {}, .compression = "lz4"}, "\"lz4\"");
  refuses({.columns = {}, .hashes = {"crc32"}}, "\"crc32\"");
  refuses({.columns = {}, .hashes = {"xxh64", "sha1"}}, "sorted");
  refuses({.columns = {}, .hashes = {"sha1", "sha1"}}, "different");
}

/// A disk with room for some bytes.
class FullDisk : public FileOps {
 public:
  explicit FullDisk(size_t room) : room_(room) {}
  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    return std::make_unique<File>(FileOps::create(path, direct, readers), room_, path);
  }

 private:
  class File : public OutputFile {
   public:
    File(std::unique_ptr<OutputFile> file, size_t& room, std::string path)
        : file_(std::move(file)), room_(room), path_(std::move(path)) {}
    void write(const void* data, size_t num_bytes) override {
      if (num_bytes > room_) fail(ExitCode::kStorage, "[files] cannot write {}: disk full", path_);
      room_ -= num_bytes;
      file_->write(data, num_bytes);
    }
    void sync() override { file_->sync(); }
    void close() override { file_->close(); }

   private:
    std::unique_ptr<OutputFile> file_;
    size_t& room_;
    std::string path_;
  };
  size_t room_;
};

TEST_F(MdsWriterTest, AFullDiskLeavesNoIndex) {
  FullDisk disk(1000);
  expect_error(ExitCode::kStorage, {"shard.0000"}, [&] {
    MdsWriter writer(disk, temp_.path(), {.columns = {{"x", "bytes"}}, .size_limit = 600});
    for (int i = 0; i < 10; ++i) writer.write({std::string(300, 'x')});
    writer.finish();
  });
  EXPECT_FALSE(std::filesystem::exists(temp_ / "index.json"));
}

}  // namespace
}  // namespace tycho
