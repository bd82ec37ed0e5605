// Compressed files, whole and damaged. What other programs wrote is read in compressed_shard_test.cpp.
#include "trainer/data/storage/decompress.h"

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/storage/decompressed.h"
#include "trainer/data/storage/compress.h"

namespace tycho {
namespace {

using testing::decompressed;
using testing::expect_error;
using testing::TempDir;
using testing::write_text;

const std::vector<std::string> kNames = {"zstd", "zstd:1", "zstd:22", "gz",    "gz:0",
                                         "br:1", "br",     "bz2",     "snappy"};

class DecompressTest : public ::testing::Test {
 protected:
  static std::string sentences(size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += fmt::format("Sentence {} has the square {}. ", i, i * i);
    return text;
  }
  /// In both ways, which must agree.
  std::string to_memory(const std::string& name, int64_t raw_bytes) const {
    const CompressionKind kind = parse_compression(name, "[test]").kind;
    std::string place(static_cast<size_t>(raw_bytes) + 64, '#'), given;
    const std::span<char> room = std::span(place).first(static_cast<size_t>(raw_bytes));
    const std::string grown = problem_of([&] { given = decompressed(path_, kind, raw_bytes); });
    const std::string in_place = problem_of([&] { decompress_into(path_, kind, room); });
    EXPECT_EQ(grown.empty(), in_place.empty()) << grown << in_place;
    EXPECT_EQ(place.substr(room.size()), std::string(64, '#')) << "nothing is written behind it";
    if (!in_place.empty()) fail(ExitCode::kUnusable, "{}", in_place);
    EXPECT_TRUE(place.substr(0, room.size()) == given);
    return given;
  }
  template <class Call>
  static std::string problem_of(Call call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      return error.what();
    }
    return "";
  }
  void write_zip(const std::string& name, std::string_view raw) const {
    write_text(path_, compress_bytes(parse_compression(name, "[test]"), raw));
  }
  TempDir temp_;
  std::string path_ = temp_ / "shard.zip";
};

TEST_F(DecompressTest, GivesBackWhatWasCompressed) {
  const std::string large = sentences(60000);
  ASSERT_GT(large.size(), 8u * (256 << 10)) << "several pieces";
  for (const std::string& name : kNames)
    for (const std::string& raw : {std::string(1, 'x'), sentences(3), large, std::string(3 << 20, '\0')}) {
      write_zip(name, raw);
      EXPECT_TRUE(to_memory(name, std::ssize(raw)) == raw) << name << " " << raw.size();
    }
}

/// "hello" as one frame of zstd whose header asks for a window of 2 GiB, as `zstd --long=31` writes it.
const std::string kLongWindow = {'\x28', '\xb5', '\x2f', '\xfd', '\x00', '\xa8', '\x29',
                                 '\x00', '\x00', 'h',    'e',    'l',    'l',    'o'};

TEST_F(DecompressTest, ALongWindowIsNoDamage) {
  write_text(path_, kLongWindow);
  const std::string problem = problem_of([&] { to_memory("zstd", 5); });
  EXPECT_NE(problem.find("shard.zip: expected a window of at most 128 MiB"), std::string::npos) << problem;
}

TEST_F(DecompressTest, AFileOfAnotherSizeIsRefused) {
  const std::string raw = sentences(20000);
  for (const std::string& name : kNames) {
    write_zip(name, raw);
    const auto size = static_cast<int64_t>(raw.size());
    expect_error(ExitCode::kUnusable, {"shard.zip", fmt::format("{} bytes that index.json says", size - 1)},
                 [&] { to_memory(name, size - 1); });
    expect_error(ExitCode::kUnusable, {"shard.zip", fmt::format("index.json says {}", size + 1)},
                 [&] { to_memory(name, size + 1); });
  }
}

TEST_F(DecompressTest, ABombIsStoppedWhereTheIndexSaysItEnds) {
  const std::string raw(256 << 20, '\0');
  for (const std::string& name : kNames) {
    if (name == "br" || name == "zstd:22" || name == "bz2" || name == "gz:0")
      continue;  // slow to make, or no bomb
    write_zip(name, raw);
    size_t given = 0;
    expect_error(ExitCode::kUnusable, {"gives more than the 1000 bytes"}, [&] { to_memory(name, 1000); });
    expect_error(ExitCode::kUnusable, {"gives more than the 1000 bytes"}, [&] {
      decompress(path_, parse_compression(name, "[test]").kind, 1000,
                 [&](std::string_view piece) { given += piece.size(); });
    });
    EXPECT_LE(given, 1000u);
  }
}

TEST_F(DecompressTest, CutOffAnywhereIsFound) {
  const std::string raw = sentences(40);
  for (const std::string& name : kNames) {
    const std::string zip = compress_bytes(parse_compression(name, "[test]"), raw);
    for (size_t size = 0; size < zip.size(); size += 1 + zip.size() / 97) {
      write_text(path_, std::string_view(zip).substr(0, size));
      expect_error(ExitCode::kUnusable, {"shard.zip", "copy the shard again"},
                   [&] { to_memory(name, std::ssize(raw)); });
    }
  }
}

TEST_F(DecompressTest, BytesAfterTheEndAreRefused) {
  const std::string raw = sentences(40);
  for (const std::string& name : kNames) {
    const std::string zip = compress_bytes(parse_compression(name, "[test]"), raw);
    for (const std::string& more : {std::string("x"), zip}) {
      write_text(path_, zip + more);
      expect_error(ExitCode::kUnusable, {"shard.zip"}, [&] { to_memory(name, std::ssize(raw)); });
    }
  }
}

TEST_F(DecompressTest, AFlippedBitNeverGivesMoreThanWasAskedFor) {
  const std::string raw = sentences(40);
  for (const std::string& name : kNames) {
    const std::string zip = compress_bytes(parse_compression(name, "[test]"), raw);
    for (size_t at = 0; at < zip.size(); at += 1 + zip.size() / 61) {
      std::string bad = zip;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      write_text(path_, bad);
      try {
        EXPECT_EQ(to_memory(name, std::ssize(raw)).size(), raw.size());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
      }
    }
  }
}

TEST_F(DecompressTest, AStopEndsIt) {
  std::stop_source stop;
  stop.request_stop();
  std::string room(9, '.');
  for (const std::string& name : kNames) {
    write_zip(name, "some text");
    expect_error(ExitCode::kTerminated, {"stopped", "shard.zip"}, [&] {
      decompress_into(path_, parse_compression(name, "[test]").kind, room, stop.get_token());
    });
  }
}

TEST_F(DecompressTest, AMissingFileIsNamed) {
  expect_error(ExitCode::kUnusable, {"cannot read shard", "shard.zip"}, [&] { to_memory("zstd", 10); });
}

TEST_F(DecompressTest, AnErrorOfTheConsumerReachesTheCaller) {
  write_zip("zstd", "text");
  expect_error(ExitCode::kStorage, {"the disk is full"}, [&] {
    decompress(path_, CompressionKind::kZstd, 4,
               [](std::string_view) { fail(ExitCode::kStorage, "the disk is full"); });
  });
}

}  // namespace
}  // namespace tycho
