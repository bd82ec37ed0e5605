// Checkpoints of several ranks: pieces of tensors in several files, read whole or in other pieces.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/shard_writer.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

using Shape = std::vector<int64_t>;

/// A tensor whose element i is i, cut into boxes.
struct Numbered {
  std::string name;
  Shape shape;
  std::vector<float> values = {};
  std::vector<std::vector<float>> storage = {};

  Numbered(std::string tensor, Shape dims) : name(std::move(tensor)), shape(std::move(dims)) {
    values.resize(static_cast<size_t>(volume(whole_box(shape))));
    std::iota(values.begin(), values.end(), 0.0F);
  }
  std::vector<float> of(const Box& box) const {
    std::vector<float> some(static_cast<size_t>(volume(box)), -1);
    for_runs(box, whole_box(shape), box,
             [&](int64_t i, int64_t j, int64_t n) { std::copy_n(values.begin() + i, n, some.begin() + j); });
    return some;
  }
  TensorBytes piece(const Box& box) {
    storage.push_back(of(box));
    TensorBytes bytes = {name, "F32", box.shape, storage.back().data(), volume(box) * 4};
    if (box != whole_box(shape)) bytes.global_shape = shape, bytes.offsets = box.offsets;
    return bytes;
  }
};

class PiecesTest : public testing::Test {
 protected:
  /// Saves with a file for each rank; the ranks write at once.
  CheckpointInfo save(const std::vector<std::vector<TensorBytes>>& of_ranks) {
    CheckpointStore store(real_files(), dir_.path(), 0, 1);
    const Json world = {{"ranks", of_ranks.size()}};
    return store.save({.step = 7, .world = world}, 1000, [&](const std::string& folder) {
      std::vector<std::future<WrittenShard>> ranks;
      for (size_t r = 0; r < of_ranks.size(); ++r)
        ranks.push_back(std::async(std::launch::async, [&, r] {
          return write_shard(real_files(), folder, rank_file_name(static_cast<int>(r)), of_ranks[r]);
        }));
      std::vector<WrittenShard> shards;
      for (std::future<WrittenShard>& rank : ranks) shards.push_back(rank.get());
      return shards;
    });
  }
  static std::vector<float> read(const CheckpointReader& reader, const std::string& name, const Box& box) {
    std::vector<float> values(static_cast<size_t>(volume(box)), -1);
    reader.read_box(name, box, values.data(), volume(box) * 4);
    return values;
  }
  Failure save_failure(const std::vector<std::vector<TensorBytes>>& of_ranks) {
    const Failure failure = failure_of([&] { save(of_ranks); });
    EXPECT_TRUE(fs::is_empty(dir_.path())) << "something was left of a save that failed";
    return failure;
  }

  const TempDir dir_;
  Numbered a_{"a", {6, 5}}, b_{"b", {40}};
};

TEST_F(PiecesTest, AnyBoxOfATensorComesBackFromAnyCut) {
  // Rows, columns, a range of elements with a ragged edge, and what is whole beside it.
  const std::vector<Box> ragged = boxes_of_range({6, 5}, 0, 13), rest = boxes_of_range({6, 5}, 13, 30);
  for (const std::vector<std::vector<Box>>& cut : std::vector<std::vector<std::vector<Box>>>{
           {{{{0, 0}, {2, 5}}}, {{{2, 0}, {4, 5}}}},
           {{{{0, 3}, {6, 2}}}, {{{0, 0}, {6, 3}}}},
           {ragged, rest},
           {{whole_box({6, 5})}, {}},
           {{{{0, 0}, {3, 2}}, {{3, 2}, {3, 3}}}, {{{0, 2}, {3, 3}}, {{3, 0}, {3, 2}}}}}) {
    std::vector<std::vector<TensorBytes>> of_ranks(2);
    for (size_t r = 0; r < 2; ++r)
      for (const Box& box : cut[r]) of_ranks[r].push_back(a_.piece(box));
    of_ranks[1].push_back(b_.piece(whole_box({40})));
    const CheckpointInfo saved = save(of_ranks);
    const CheckpointInfo found = find_checkpoint(saved.path);
    EXPECT_EQ(found.manifest["world"]["ranks"], 2);
    const CheckpointReader reader(found);
    reader.verify();
    EXPECT_EQ(reader.describe("a").shape, (Shape{6, 5}));
    EXPECT_EQ(reader.names().size(), 2u);
    std::vector<float> whole(30);
    reader.read("a", whole.data(), 120);
    EXPECT_EQ(whole, a_.values);
    EXPECT_EQ(read(reader, "b", {{10}, {7}}), b_.of({{10}, {7}}));
    for (int64_t row = 0; row < 6; ++row)
      for (int64_t column = 0; column < 5; ++column)
        for (int64_t rows = 1; row + rows <= 6; ++rows)
          for (int64_t columns = 1; column + columns <= 5; ++columns) {
            const Box box = {{row, column}, {rows, columns}};
            ASSERT_EQ(read(reader, "a", box), a_.of(box)) << box_text(box);
          }
  }
}

TEST_F(PiecesTest, FilesNameTheirPieces) {
  const CheckpointInfo saved = save({{a_.piece({{0, 0}, {6, 3}}), b_.piece(whole_box({40}))},
                                     {a_.piece({{0, 3}, {2, 2}}), a_.piece({{2, 3}, {4, 2}})}});
  const auto names = [&](const char* file) {
    std::string text;
    for (const SafetensorsEntry& entry : read_safetensors_header(saved.path + "/" + file).entries)
      text += entry.name + "; ";
    return text;
  };
  EXPECT_EQ(names("rank-00000.safetensors"), "a[0:6, 0:3]; b; ");
  EXPECT_EQ(names("rank-00001.safetensors"), "a[0:2, 3:5]; a[2:6, 3:5]; ");
  const Json tensors = saved.manifest["tensors"];
  EXPECT_EQ(tensors[0]["name"], "a");
  EXPECT_EQ(tensors[0]["shape"], Json({6, 5}));
  ASSERT_EQ(tensors[0]["pieces"].size(), 3u);
  EXPECT_EQ(tensors[0]["pieces"][2][0], "rank-00001.safetensors");
  EXPECT_EQ(tensors[0]["pieces"][2][3], parse_json("[[2,6],[3,5]]", ""));
}

TEST_F(PiecesTest, OnlyTheBlocksOfABoxAreVerifiedAndDamageInThemIsNamed) {
  constexpr int64_t kRows = 5000, kColumns = 2000;  // 40 MB: a piece spans blocks
  Numbered big("big", {kRows, kColumns});
  const CheckpointInfo saved =
      save({{big.piece({{0, 0}, {4500, kColumns}})}, {big.piece({{4500, 0}, {500, kColumns}})}});
  const std::string second = saved.path + "/rank-00001.safetensors";
  std::fstream file(second, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('?');
  file.close();
  const CheckpointReader reader(find_checkpoint(saved.path));
  const Box fine = {{2000, 300}, {2500, 7}};
  EXPECT_EQ(read(reader, "big", fine), big.of(fine));
  const Failure failure = failure_of([&] { read(reader, "big", {{4400, 0}, {200, 1}}); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says(second + " is damaged")) << failure.message;
  EXPECT_TRUE(failure_of([&] { reader.verify(); }).says(second + " is damaged"));
}

TEST_F(PiecesTest, AFileOfAnotherRankIsNotTakenForTheRightOne) {
  const CheckpointInfo saved = save({{b_.piece({{0}, {20}})}, {b_.piece({{20}, {20}})}});
  const std::string first = saved.path + "/rank-00000.safetensors";
  fs::rename(first, saved.path + "/away");
  fs::copy_file(saved.path + "/rank-00001.safetensors", first);
  const Failure failure = failure_of([&] { read(CheckpointReader(saved), "b", {{0}, {1}}); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says(first)) << failure.message;
}

TEST_F(PiecesTest, HolesOverlapsAndUnknownNamesAreNotCommitted) {
  Failure failure = save_failure({{b_.piece({{0}, {20}})}, {b_.piece({{21}, {19}})}});
  EXPECT_EQ(failure.code, ExitCode::kStorage);
  EXPECT_TRUE(failure.says("tensor 'b'") && failure.says("2 pieces hold 156 of the 160 bytes of [40] F32"))
      << failure.message;
  failure = save_failure({{a_.piece({{0, 0}, {4, 5}})}, {a_.piece({{3, 0}, {3, 5}})}});
  EXPECT_TRUE(failure.says("tensor 'a'") &&
              failure.says("[0:4, 0:5] in rank-00000.safetensors and [3:6, 0:5] in rank-00001.safetensors "
                           "overlap"))
      << failure.message;
  // As many elements as the tensor has, one of them twice and one not at all.
  failure = save_failure({{b_.piece({{0}, {20}})}, {b_.piece({{19}, {20}})}});
  EXPECT_TRUE(failure.says("[0:20] in rank-00000.safetensors and [19:39] in rank-00001.safetensors overlap"))
      << failure.message;
  TensorBytes outside = b_.piece({{20}, {20}});
  outside.offsets = {21};
  failure = save_failure({{b_.piece({{0}, {20}}), outside}});
  EXPECT_TRUE(failure.says("[21:41] of tensor b is no part of its shape [40]")) << failure.message;
  Numbered other("b", {41});
  failure = save_failure({{b_.piece({{0}, {20}})}, {other.piece({{20}, {21}})}});
  EXPECT_TRUE(failure.says("pieces of b are of two tensors: F32 [40] and F32 [41]")) << failure.message;
}

TEST_F(PiecesTest, AManifestWithBadPiecesIsRefused) {
  const CheckpointInfo saved = save({{a_.piece({{0, 0}, {3, 5}})}, {a_.piece({{3, 0}, {3, 5}})}});
  const auto refused = [&](const std::function<void(Json & pieces)>& change) {
    Json manifest = saved.manifest;
    change(manifest["tensors"][0]["pieces"]);
    const Failure failure = failure_of([&] { manifest_from_json(manifest, "run/COMMIT"); });
    EXPECT_EQ(failure.code, ExitCode::kUnusable);
    EXPECT_TRUE(failure.says("run/COMMIT: tensor 'a': the field 'pieces' is")) << failure.message;
    return failure.message;
  };
  const auto extent = [](const char* text) { return parse_json(text, ""); };
  refused([](Json& pieces) { pieces.erase(1); });
  refused([](Json& pieces) { pieces[1] = pieces[0]; });
  refused([](Json& pieces) { pieces.push_back(pieces[1]); });
  refused([&](Json& pieces) { pieces[1][3] = extent("[[2,5],[0,5]]"); });
  refused([&](Json& pieces) { pieces[1][3] = extent("[[4,7],[0,5]]"); });
  refused([&](Json& pieces) { pieces[1][3] = extent("[[3,6],[0,6]]"); });
  refused([&](Json& pieces) { pieces[1][3] = extent("[[3,6]]"); });
  refused([](Json& pieces) { pieces[1][0] = "rank-00002.safetensors"; });
  refused([](Json& pieces) { pieces[1][1] = 1 << 20; });
}

TEST_F(PiecesTest, HeadersThatDisagreeWithCommitAreFound) {
  const CheckpointInfo saved = save({{a_.piece({{0, 0}, {3, 5}})}, {a_.piece({{3, 0}, {3, 5}})}});
  CheckpointInfo changed = saved;
  Json& pieces = changed.manifest["tensors"][0]["pieces"];
  std::swap(pieces[0][0], pieces[1][0]);
  const Failure failure = failure_of([&] { CheckpointReader(changed).verify(); });
  EXPECT_EQ(failure.code, ExitCode::kUnusable);
  EXPECT_TRUE(failure.says("and COMMIT name other tensors")) << failure.message;
}

TEST_F(PiecesTest, RefusesToReadOutsideATensor) {
  const CheckpointReader reader(save({{b_.piece(whole_box({40}))}}));
  float room[40];
  EXPECT_TRUE(failure_of([&] {
                reader.read_box("b", {{30}, {11}}, room, 44);
              }).says("expected [30:41] of tensor 'b', which is [40]"));
  EXPECT_TRUE(failure_of([&] { reader.read_box("b", {{30}, {10}}, room, 44); }).says("has 40 bytes"));
}

}  // namespace
}  // namespace tycho
