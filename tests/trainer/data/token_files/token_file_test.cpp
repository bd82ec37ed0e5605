// Headers and indexes of token files, whole and damaged.
#include "trainer/data/token_files/token_file.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest() { fs::copy(golden("token_files"), temp_ / "t"); }
  std::string path(const std::string& name) const { return temp_ / ("t/" + name); }
  TokenFile read(const std::string& name, std::optional<int64_t> token_bytes = {}) const {
    return find_token_files({.path = path(name), .token_bytes = token_bytes}).at(0);
  }
  /// Writes bytes into a file of the test.
  template <class T>
  void put(const std::string& name, size_t at, T value) const {
    std::string bytes = read_file(path(name));
    bytes.replace(at, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    write_text(path(name), bytes);
  }
  void cut(const std::string& name, int64_t less) const {
    fs::resize_file(path(name), fs::file_size(path(name)) - static_cast<uintmax_t>(less));
  }
  void expect_unusable(const std::string& name, std::initializer_list<std::string_view> parts) const {
    expect_error(ExitCode::kUnusable, parts, [&] { read(name); });
  }
  TempDir temp_;
};

TEST_F(TokenFileTest, DistinguishesTheFormats) {
  const auto expect = [&](const std::string& name, TokenFormat format, std::string_view dtype,
                          int64_t begin) {
    const TokenFile file = read(name);
    EXPECT_EQ(file.format, format) << name;
    EXPECT_EQ(file.dtype, dtype) << name;
    EXPECT_EQ(file.begin, begin) << name;
    EXPECT_EQ(file.num_tokens, 87) << name;
  };
  expect("megatron_uint16.bin", TokenFormat::kMegatron, "uint16", 0);
  expect("megatron_int32.bin", TokenFormat::kMegatron, "int32", 0);
  expect("fairseq.bin", TokenFormat::kMegatron, "int64", 0);
  expect("nanoset.ds", TokenFormat::kNanoset, "uint16", 0);
  expect("nanoset_large.ds", TokenFormat::kNanoset, "uint32", 0);
  expect("llmc_gpt2.bin", TokenFormat::kLlmc, "uint16", 1024);
  expect("llmc_llama3.bin", TokenFormat::kLlmc, "uint32", 1024);
}

TEST_F(TokenFileTest, AFolderIsReadInTheOrderOfItsPaths) {
  fs::create_directories(temp_ / "f/b");
  fs::copy(path("nanoset.ds"), temp_ / "f/b/one.ds");
  fs::copy(path("llmc_gpt2.bin"), temp_ / "f/a.bin");
  write_text(temp_ / "f/readme.txt", "not read");
  const auto files = find_token_files({.path = temp_ / "f", .token_bytes = 2});
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, temp_ / "f/a.bin");
  EXPECT_EQ(files[1].path, temp_ / "f/b/one.ds");
  fs::create_directories(temp_ / "empty");
  expect_error(ExitCode::kUnusable, {"no file that ends in .bin, .ds or .npy"},
               [&] { find_token_files({.path = temp_ / "empty"}); });
  expect_error(ExitCode::kUnusable, {"/nowhere"}, [&] { find_token_files({.path = temp_ / "nowhere"}); });
}

TEST_F(TokenFileTest, OtherFilesAreRefused) {
  write_text(path("other.bin"), std::string(2000, 'x'));
  expect_unusable("other.bin",
                  {"other.bin is not known", "other.idx", "llm.c or NumPy", ".ds", "format = \"raw\""});
  expect_error(ExitCode::kUnusable, {"does not begin with the header of llm.c"},
               [&] { find_token_files({.path = path("other.bin"), .format = TokenFormat::kLlmc}); });
  expect_error(ExitCode::kUnusable, {"other.idx"},
               [&] { find_token_files({.path = path("other.bin"), .format = TokenFormat::kMegatron}); });
}

TEST_F(TokenFileTest, AnIncorrectIndexOfMegatronIsRefused) {
  const std::string bin = "megatron_uint16.bin", idx = "megatron_uint16.idx", good = read_file(path(idx));
  const auto refuses = [&](std::initializer_list<std::string_view> parts, auto change) {
    write_text(path(idx), good);
    change();
    expect_unusable(bin, parts);
  };
  refuses({idx, "is not an index"}, [&] { put(idx, 0, 'X'); });
  refuses({idx, "is not an index"}, [&] { write_text(path(idx), good.substr(0, 20)); });
  refuses({idx, "version 2"}, [&] { put(idx, 9, uint64_t{2}); });
  refuses({idx, "type 7, which is not an integer"}, [&] { put(idx, 17, uint8_t{7}); });
  refuses({idx, "type 99"}, [&] { put(idx, 17, uint8_t{99}); });
  refuses({idx, "do not fill"}, [&] { put(idx, 18, int64_t{1} << 60); });
  refuses({idx, "do not fill"}, [&] { put(idx, 18, int64_t{-1}); });
  refuses({idx, "do not fill"}, [&] { put(idx, 26, int64_t{-5}); });
  refuses({idx, "do not fill"}, [&] { cut(idx, 1); });
  refuses({idx, "sequence 0 has -1 tokens"}, [&] { put(idx, 34, int32_t{-1}); });
  refuses({idx, "sequence 1 has"}, [&] { put(idx, 34, int32_t{1000}); });
  refuses({bin, "not a multiple of the 2 bytes"}, [&] { cut(bin, 1); });
  refuses({bin, "holds 86 tokens", "says 87"}, [&] { cut(bin, 1); });
}

TEST_F(TokenFileTest, AnIncorrectHeaderOfLlmcIsRefused) {
  put("llmc_gpt2.bin", 4, int32_t{2});
  expect_unusable("llmc_gpt2.bin", {"version 2", "version 1 is read"});
  cut("llmc_llama3.bin", 4);
  expect_unusable("llmc_llama3.bin", {"holds 86 tokens", "header says 87"});
  cut("llmc_llama3.bin", 1);
  expect_unusable("llmc_llama3.bin", {"not a multiple of the 4 bytes"});
}

TEST_F(TokenFileTest, ANanosetNeedsTheSizeOfItsTokens) {
  expect_error(ExitCode::kUnusable, {"says 2 bytes per token, token_bytes is 4"},
               [&] { read("nanoset.ds", 4); });
  write_text(path("nanoset.ds.metadata"), "gpt2|3\n87");
  expect_unusable("nanoset.ds", {"3 bytes per token"});
  write_text(path("nanoset.ds.metadata"), "gpt2\n");
  expect_unusable("nanoset.ds", {"nanoset.ds.metadata must begin with"});
  write_text(path("nanoset.ds.metadata"), "gpt2|2\n88\n");
  expect_unusable("nanoset.ds", {"holds 87 tokens", "says 88"});
  fs::remove(path("nanoset.ds.metadata"));
  expect_unusable("nanoset.ds", {"nanoset.ds.metadata does not exist", "token_bytes = 2"});
  EXPECT_EQ(read("nanoset.ds", 2).num_tokens, 87);
}

class PlainTokensTest : public TokenFileTest {
 protected:
  PlainTokensTest() {
    fs::remove_all(temp_ / "t");
    fs::copy(golden("plain_tokens"), temp_ / "t");
  }
  TokenFile read_raw(const std::string& name, TokenDtype dtype) const {
    return find_token_files({.path = path(name), .format = TokenFormat::kRaw, .dtype = dtype}).at(0);
  }
};

TEST_F(PlainTokensTest, ArraysOfNumpyAreKnownByTheirHeader) {
  const auto expect = [&](const std::string& name, std::string_view dtype) {
    const TokenFile file = read(name);
    EXPECT_EQ(file.format, TokenFormat::kNumpy) << name;
    EXPECT_EQ(file.dtype, dtype) << name;
    EXPECT_EQ(file.begin, 128) << name;
    EXPECT_EQ(file.num_tokens, 75) << name;
  };
  expect("saved_uint16.npy", "uint16");
  expect("saved_uint32.npy", "uint32");
  expect("saved_int32.npy", "int32");
  expect("saved_int64.npy", "int64");
  expect("version_2.npy", "uint16");
  expect("version_3.npy", "uint16");
}

TEST_F(PlainTokensTest, OtherArraysOfNumpyAreRefused) {
  expect_unusable("refused_big_endian.npy", {"refused_big_endian.npy", "little-endian integers", "\">u2\""});
  expect_unusable("refused_float.npy", {"\"<f4\"", "uint16 or uint32"});
  expect_unusable("refused_matrix.npy", {"one dimension", "(5, 15)", "reshape(-1)"});
  const std::string name = "saved_uint16.npy", good = read_file(path(name));
  const auto refuses = [&](const std::string& bytes, std::initializer_list<std::string_view> parts) {
    write_text(path(name), bytes);
    expect_unusable(name, parts);
  };
  refuses(good.substr(0, good.size() - 2), {"holds 74 tokens", "header says 75"});
  refuses(good.substr(0, good.size() - 1), {"149 bytes of tokens", "not a multiple of the 2 bytes"});
  refuses(good.substr(0, 100), {"expected the whole header"});
  refuses(good.substr(0, 7), {"expected the whole header"});
  std::string changed = good;
  changed[6] = 9;
  refuses(changed, {"version 1, 2 or 3", "got 9"});
  changed = good;
  changed.replace(changed.find("(75"), 3, "(-1");
  refuses(changed, {"one dimension", "(-1,)"});
}

TEST_F(PlainTokensTest, BareTokensNeedTheirDtype) {
  expect_unusable("nanogpt.bin",
                  {"nanogpt.bin is not known", "format = \"raw\"", "\"uint16\" or \"uint32\""});
  expect_unusable("olmo_uint32.npy", {"olmo_uint32.npy is not known", "format = \"raw\""});
  const TokenFile small = read_raw("nanogpt.bin", TokenDtype::kUint16);
  EXPECT_EQ(small.dtype, "uint16");
  EXPECT_EQ(small.begin, 0);
  EXPECT_EQ(small.num_tokens, 75);
  EXPECT_EQ(read_raw("olmo_uint32.npy", TokenDtype::kUint32).num_tokens, 75);
}

TEST_F(PlainTokensTest, BareTokensOfTheWrongDtypeAreRefused) {
  const auto refuses = [&](const std::string& name, TokenDtype dtype,
                           std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { read_raw(name, dtype); });
  };
  refuses("olmo_uint32.npy", TokenDtype::kUint16,
          {"expected tokens of 16 bits, got 32 bits", "dtype = \"uint32\""});
  refuses("nanogpt.bin", TokenDtype::kUint32, {"150 bytes of tokens, not a multiple of the 4 bytes"});
  cut("nanogpt.bin", 1);
  refuses("nanogpt.bin", TokenDtype::kUint16, {"149 bytes of tokens, not a multiple of the 2 bytes"});
  refuses("saved_uint16.npy", TokenDtype::kUint16, {"header of NumPy", "leave out format"});
}

}  // namespace
}  // namespace tycho
