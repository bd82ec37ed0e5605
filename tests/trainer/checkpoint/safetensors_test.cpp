// The container: our bytes are those that the reference library reads and writes, and hostile headers are
// errors.
#include "trainer/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/checkpoint/shard_writer.h"

namespace tycho {
namespace {

const std::string kGolden = TYCHO_GOLDEN_DIR "/safetensors/";

/// tests/golden/make_safetensors_goldens.py has the same rule: element i of a tensor is i * 3 - 5, in its
/// dtype.
std::vector<char> golden_bytes(const std::string& dtype, int64_t numel) {
  std::vector<char> bytes;
  for (int64_t i = 0; i < numel; ++i) {
    const auto value = static_cast<float>(i * 3 - 5);
    const int64_t whole = i * 3 - 5;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint16_t high = static_cast<uint16_t>(bits >> 16);
    if (dtype == "F32")
      bytes.insert(bytes.end(), reinterpret_cast<char*>(&bits), reinterpret_cast<char*>(&bits) + 4);
    if (dtype == "BF16") bytes.insert(bytes.end(), {static_cast<char>(high), static_cast<char>(high >> 8)});
    if (dtype == "I64") {
      const char* begin = reinterpret_cast<const char*>(&whole);
      bytes.insert(bytes.end(), begin, begin + 8);
    }
  }
  return bytes;
}

struct GoldenTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  int64_t numel;
};
const std::vector<GoldenTensor> kTensors = {{"model.embed_tokens.weight", "F32", {5, 3}, 15},
                                            {"model.norm.weight", "BF16", {7}, 7},
                                            {"scalar", "F32", {}, 1},
                                            {"empty", "BF16", {0, 4}, 0},
                                            {"counts", "I64", {2, 2}, 4},
                                            {"name \xc3\xa9 \"quoted\"", "F32", {1}, 1}};

TEST(Safetensors, ReadsWhatPythonWrites) {
  const std::string path = kGolden + "python.safetensors";
  const SafetensorsHeader header = read_safetensors_header(path);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.metadata.at("note"), "made by Python");
  ASSERT_EQ(header.entries.size(), kTensors.size());
  for (const GoldenTensor& tensor : kTensors) {
    const auto entry = std::find_if(header.entries.begin(), header.entries.end(),
                                    [&](const SafetensorsEntry& e) { return e.name == tensor.name; });
    ASSERT_NE(entry, header.entries.end()) << tensor.name;
    EXPECT_EQ(entry->dtype, tensor.dtype);
    EXPECT_EQ(entry->shape, tensor.shape);
    const std::vector<char> expected = golden_bytes(tensor.dtype, tensor.numel);
    std::vector<char> bytes(static_cast<size_t>(entry->end - entry->begin));
    read_exactly(path, header.data_start + entry->begin, bytes.data(), bytes.size());
    EXPECT_TRUE(bytes == expected) << tensor.name;
  }
}

// The script checked tycho.safetensors with the reference library.
TEST(Safetensors, WritesWhatPythonReads) {
  const TempDir dir;
  std::vector<std::vector<char>> storage;
  std::vector<TensorBytes> tensors;
  for (const GoldenTensor& tensor : kTensors) {
    storage.push_back(golden_bytes(tensor.dtype, tensor.numel));
    const auto num_bytes = static_cast<int64_t>(storage.back().size());
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, storage.back().data(), num_bytes});
  }
  const WrittenShard shard = write_shard(real_files(), dir.path(), "tycho.safetensors", tensors);
  const std::string bytes = read_file(dir / "tycho.safetensors");
  EXPECT_TRUE(bytes == read_file(kGolden + "tycho.safetensors"));
  const SafetensorsHeader header = read_safetensors_header(dir / "tycho.safetensors");
  EXPECT_EQ(header.data_start % 4096, 0);
  for (size_t i = 0; i < header.entries.size(); ++i) {
    EXPECT_EQ(header.data_start + header.entries[i].begin, shard.tensors[i].pieces[0].offset);
    EXPECT_EQ(header.entries[i].begin % safetensors_dtype_bytes(header.entries[i].dtype), 0);
  }
}

TEST(Safetensors, HeaderIsPaddedToWhatIsAskedFor) {
  for (const int64_t alignment : {8, 64, 4096}) {
    for (int length = 0; length < 20; ++length) {
      const std::string name(static_cast<size_t>(length), 'n');
      const std::string prefix = safetensors_prefix({{name, "U8", {3}, 0, 3}}, {}, alignment);
      EXPECT_EQ(prefix.size() % static_cast<size_t>(alignment), 0u);
      const auto end = static_cast<int64_t>(prefix.size()) + 3;
      EXPECT_EQ(parse_safetensors_header(prefix.substr(8), end, "x").entries[0].name, name);
    }
  }
}

Failure parse(const std::string& json, int64_t num_data_bytes) {
  const auto num_file_bytes = static_cast<int64_t>(json.size()) + 8 + num_data_bytes;
  return failure_of([&] { parse_safetensors_header(json, num_file_bytes, "evil.safetensors"); });
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  for (
      const auto& [json, size] : std::vector<std::pair<std::string, int64_t>>{
          {"{}", 0},
          {"{}      ", 0},
          {R"({"__metadata__":{}})", 0},
          {R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"a":{"data_offsets":[0,1],"dtype":"I8","shape":[]}})",
           3},
          {R"({"e":{"dtype":"F64","shape":[0,9223372036854775807],"data_offsets":[0,0]}})", 0}}) {
    EXPECT_EQ(parse(json, size).code, ExitCode::kOk) << json << parse(json, size).message;
  }
}

TEST(Safetensors, RefusesHostileHeaders) {
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const std::vector<std::tuple<std::string, int64_t, const char*>> cases = {
      {"", 0, "does not start with {"},
      {" {}", 0, "does not start with {"},
      {"[]", 0, "does not start with {"},
      {"{", 0, "not JSON at byte"},
      {"{}x", 0, "not JSON at byte"},
      {std::string("{}\0", 3), 0, "not JSON at byte"},
      {"{\"\xff\":{}}", 0, "not JSON at byte"},
      {"{" + a + "," + a + "}", 2, "appears twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "appears twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "appears twice"},
      {R"({"__metadata__":{"k":1}})", 0, "a number where"},
      {R"({"__metadata__":{"k":{}}})", 0, "an object where"},
      {R"({"__metadata__":"x"})", 0, "a string where"},
      {R"({"a":null})", 0, "null where"},
      {R"({"a":{"dtype":"U8","shape":[2]}})", 2, "lacks"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2, "two fields 'dtype'"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}})", 2, "unknown field 'x'"},
      {R"({"a":{"dtype":"U9","shape":[2],"data_offsets":[0,2]}})", 2, "unknown dtype 'U9'"},
      {R"({"a":{"dtype":["U8"],"shape":[2],"data_offsets":[0,2]}})", 2, "an array where"},
      {R"({"a":{"dtype":"U8","shape":2,"data_offsets":[0,2]}})", 2, "a number where"},
      {R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", 2, "a negative number"},
      {R"({"a":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}})", 2, "a fraction"},
      {R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,2]}})", 2, "a boolean"},
      {R"({"a":{"dtype":"U8","shape":[[2]],"data_offsets":[0,2]}})", 2, "an array where"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,2]}})", 2, "above 2^63"},
      {R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,2]}})", 2, "above 2^64"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "out of range"},
      {R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0, "out of range"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2,2]}})", 2, "3 data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", 2, "spans [2, 0)"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}})", 3, "spans [0, 3)"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "spans [1, 3)"},
      {"{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, "'b' spans [1, 3)"},
      {"{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", 5, "'b' spans [3, 5)"},
      {"{" + a + "}", 3, "need 2 bytes of data, the file has 3"},
      {"{" + a + "}", 1, "need 2 bytes of data, the file has 1"},
      {R"({"a\n":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2, "control characters"},
      {"{\"" + std::string(1025, 'n') + R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2,
       "1025 bytes"},
  };
  for (const auto& [json, size, expected] : cases) {
    const Failure failure = parse(json, size);
    EXPECT_EQ(failure.code, ExitCode::kUnusable) << json;
    EXPECT_TRUE(failure.says(expected) && failure.says("evil.safetensors"))
        << json << ": " << failure.message;
  }
}

TEST(Safetensors, RefusesWrongLengths) {
  const TempDir dir;
  const auto attempt = [&](const std::string& bytes) {
    std::ofstream(dir / "f", std::ios::binary | std::ios::trunc) << bytes;
    return failure_of([&] { read_safetensors_header(dir / "f"); });
  };
  EXPECT_TRUE(attempt("1234567").says("too few"));
  EXPECT_TRUE(attempt(std::string(8, '\xff') + "{}").says("at most 2 are possible"));
  EXPECT_TRUE(attempt(std::string("\x03\0\0\0\0\0\0\0{}", 10)).says("a header of 3 bytes"));
  EXPECT_EQ(attempt(std::string("\x02\0\0\0\0\0\0\0{}", 10)).code, ExitCode::kOk);
  EXPECT_EQ(failure_of([&] { read_safetensors_header(dir / "absent"); }).code, ExitCode::kUnusable);
}

TEST(Safetensors, MutatedHeadersNeverCrash) {
  const SampleState state(1);
  std::vector<SafetensorsEntry> entries;
  int64_t at = 0;
  for (const TensorBytes& tensor : state.tensors) {
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, at, at + tensor.num_bytes});
    at += tensor.num_bytes;
  }
  const std::string good = safetensors_prefix(entries, {{"format", "pt"}}).substr(8);
  ASSERT_EQ(parse(good, at).code, ExitCode::kOk);
  std::mt19937 random(5);
  int refused = 0;
  constexpr int kTrials = 20000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::string bad = good;
    for (uint32_t i = 0; i <= random() % 4; ++i) {
      const size_t where = random() % bad.size(), length = random() % 20;
      switch (random() % 5) {
        case 0: bad[where] = static_cast<char>(random()); break;
        case 1: bad[where] = "0123456789[]{},:\"-e.\\"[random() % 21]; break;
        case 2: bad.erase(where, length); break;
        case 3: bad.insert(where, good, random() % good.size(), length); break;
        case 4: bad.replace(where, length, std::string(random() % 100, '[')); break;
      }
      if (bad.empty()) bad = "{";
    }
    const Failure failure = parse(bad, at);
    EXPECT_TRUE(failure.code == ExitCode::kOk || failure.code == ExitCode::kUnusable) << failure.message;
    refused += failure.code == ExitCode::kUnusable;
  }
  EXPECT_GT(refused, kTrials * 9 / 10);
}

}  // namespace
}  // namespace tycho
