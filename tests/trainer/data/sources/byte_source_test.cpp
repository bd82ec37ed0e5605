// Files that Python's gzip and zstandard compressed.
#include "trainer/data/sources/byte_source.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::string read_all(const std::string& path, size_t step) {
  const auto source = open_bytes(path);
  std::string all, piece(step, '\0');
  for (size_t n = source->read(piece.data(), step); n > 0; n = source->read(piece.data(), step))
    all.append(piece, 0, n);
  EXPECT_EQ(source->file_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  EXPECT_EQ(source->read(piece.data(), step), 0u);  // and it stays at the end
  return all;
}

TEST(ByteSourceTest, DecompressesByContent) {
  const std::string plain = read_file(golden("conversion/records.jsonl"));
  for (const char* ending : {"", ".gz", ".zst"})
    for (const size_t step : {size_t{1}, size_t{7}, size_t{1} << 20})
      EXPECT_EQ(read_all(golden("conversion/records.jsonl") + ending, step), plain) << ending << " " << step;
  TempDir dir;  // the name does not matter where the content is clear
  write_text(dir / "odd", read_file(golden("conversion/records.jsonl.zst")));
  EXPECT_EQ(read_all(dir / "odd", 100), plain);
  write_text(dir / "empty", "");
  EXPECT_EQ(read_all(dir / "empty", 100), "");
  EXPECT_EQ(read_head(golden("conversion/records.jsonl.gz"), 20), plain.substr(0, 20));
}

TEST(ByteSourceTest, SkipsThePaddingOfTapes) {
  EXPECT_EQ(read_all(golden("conversion/d.txt.gz"), 4096), read_file(golden("conversion/texts/d.txt")));
}

TEST(ByteSourceTest, CutShortAnywhereIsAnError) {
  TempDir dir;
  const std::string plain = read_file(golden("conversion/records.jsonl"));
  for (const char* ending : {".gz", ".zst"}) {
    const std::string whole = read_file(golden("conversion/records.jsonl") + std::string(ending));
    const std::string path = dir / "x" + ending;
    for (size_t size = 5; size < whole.size(); size += 97) {
      write_text(path, whole.substr(0, size));
      bool failed = false;
      std::string all;
      try {
        all = read_all(path, 1 << 16);
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.code(), ExitCode::kUnusable);
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      }
      if (failed) continue;  // between two members a file may end
      EXPECT_LT(all.size(), plain.size());
      EXPECT_TRUE(plain.starts_with(all));
    }
    write_text(path, whole.substr(0, whole.size() - 3));
    expect_error(ExitCode::kUnusable, {path, "ends in the middle of its", "copy or download it again"},
                 [&] { read_all(path, 1 << 16); });
  }
}

/// "hello" as one frame of zstd whose header asks for a window of 2 GiB, as `zstd --long=31` writes it.
const std::string kLongWindow = {'\x28', '\xb5', '\x2f', '\xfd', '\x00', '\xa8', '\x29',
                                 '\x00', '\x00', 'h',    'e',    'l',    'l',    'o'};

TEST(ByteSourceTest, ALongWindowIsNoDamage) {
  TempDir dir;
  write_text(dir / "x.zst", kLongWindow);
  expect_error(ExitCode::kUnusable, {dir / "x.zst", "window of at most 128 MiB", "without --long"},
               [&] { read_all(dir / "x.zst", 4096); });
}

TEST(ByteSourceTest, DamageIsAnError) {
  TempDir dir;
  std::string whole = read_file(golden("conversion/records.jsonl.gz"));
  whole[whole.size() - 6] ^= 1;  // its checksum
  write_text(dir / "x.gz", whole);
  expect_error(ExitCode::kUnusable, {dir / "x.gz", "damaged near byte", "incorrect data check"},
               [&] { read_all(dir / "x.gz", 4096); });
  whole = read_file(golden("conversion/records.jsonl.zst"));
  whole[whole.size() / 4] ^= 0x55;
  write_text(dir / "x.zst", whole);
  expect_error(ExitCode::kUnusable, {dir / "x.zst", "damaged"}, [&] { read_all(dir / "x.zst", 4096); });
  write_text(dir / "y.gz", "plain text");
  expect_error(ExitCode::kUnusable, {"y.gz", "not gzip data"}, [&] { open_bytes(dir / "y.gz"); });
  write_text(dir / "y.zst", "");
  expect_error(ExitCode::kUnusable, {"y.zst", "not Zstandard data"}, [&] { open_bytes(dir / "y.zst"); });
  write_text(dir / "z.gz", read_file(golden("conversion/d.txt.gz")) + "rubbish");
  expect_error(ExitCode::kUnusable, {"z.gz", "damaged"}, [&] { read_all(dir / "z.gz", 4096); });
  expect_error(ExitCode::kUnusable, {"none"}, [&] { open_bytes(dir / "none"); });
}

}  // namespace
}  // namespace tycho
