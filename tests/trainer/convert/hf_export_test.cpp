// Exported folders: what transformers would read, and round trips to the byte.
#include "trainer/convert/hf_export.h"

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/convert/convert_fixture.h"
#include "trainer/convert/hf_import.h"
#include "trainer/data/tokenizer.h"

namespace tycho {
namespace {

CheckpointReader imported(const TempDir& dir, const std::string& model) {
  return CheckpointReader(import_hf(real_files(), golden_model(model), dir / "run").checkpoint);
}

TEST(HfExport, WritesTheFileThatItImported) {
  for (const char* name : {"llama", "gpt2", "mpt"}) {
    const TempDir dir;
    const ExportReport report = export_hf(real_files(), imported(dir, name), dir / "out", {});
    EXPECT_EQ(report.dtype, "fp32");
    EXPECT_EQ(read_file(dir / "out/model.safetensors"), read_file(golden_model(name) + "/model.safetensors"))
        << name;
    EXPECT_EQ(read_file(dir / "out/generation_config.json"),
              read_file(golden_model(name) + "/generation_config.json"));
    EXPECT_TRUE(report.warnings.empty());
  }
}

TEST(HfExport, NeedsOfTheRecipeOnlyTheModel) {
  const TempDir dir;
  CheckpointInfo info = import_hf(real_files(), golden_model("llama"), dir / "run").checkpoint;
  info.manifest["recipe"]["guard"]["max_skips"] = 3;
  EXPECT_EQ(export_hf(real_files(), CheckpointReader(info), dir / "out", {}).dtype, "fp32");
  info.manifest["recipe"]["model"]["heads"] = 5;
  EXPECT_THROW(export_hf(real_files(), CheckpointReader(info), dir / "out2", {}), Error);
}

TEST(HfExport, GivesBackBf16AsItWasInShardsWithAnIndex) {
  const TempDir dir;
  const ExportReport report =
      export_hf(real_files(), imported(dir, "llama_sharded"), dir / "out", {.shard_bytes = 20000});
  EXPECT_EQ(report.dtype, "bf16");
  EXPECT_GT(report.shards.size(), 2u);
  EXPECT_EQ(tensors_of_folder(dir / "out"), tensors_of_folder(golden_model("llama_sharded")));
  const Json index = read_json_file(dir / "out/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"],
            read_json_file(golden_model("llama_sharded") + "/model.safetensors.index.json")["metadata"]);
  for (const auto& [tensor, file] : index["weight_map"].items())
    EXPECT_TRUE(tensors_of_file(dir / file.get<std::string>().insert(0, "out/")).contains(tensor));
  for (const std::string& shard : report.shards)
    EXPECT_LE(std::filesystem::file_size(dir / ("out/" + shard)), 20000u + 2000u);
  EXPECT_EQ(read_json_file(dir / "out/config.json")["torch_dtype"], "bfloat16");
}

TEST(HfExport, IsImportedAgainBitForBit) {
  const TempDir dir;
  export_hf(real_files(), imported(dir, "llama"), dir / "out", {.shard_bytes = 1});
  const CheckpointReader first(find_checkpoint(dir / "run"));
  const CheckpointReader second(import_hf(real_files(), dir / "out", dir / "again").checkpoint);
  ASSERT_EQ(first.names(), second.names());
  for (const std::string& name : first.names()) {
    std::vector<char> a(static_cast<size_t>(first.describe(name).num_bytes)), b(a.size());
    first.read(name, a.data(), static_cast<int64_t>(a.size()));
    second.read(name, b.data(), static_cast<int64_t>(b.size()));
    EXPECT_EQ(a, b) << name;
  }
  EXPECT_EQ(first.info().manifest.at("recipe").at("model"), second.info().manifest.at("recipe").at("model"));
}

TEST(HfExport, RoundsToTheDtypeThatIsAskedFor) {
  const TempDir dir;
  const CheckpointReader reader = imported(dir, "llama");
  for (const char* dtype : {"bf16", "fp16"}) {
    export_hf(real_files(), reader, dir / dtype, {.dtype = dtype});
    const SafetensorsHeader header = read_safetensors_header(dir / dtype + "/model.safetensors");
    EXPECT_EQ(header.entries[0].dtype, std::string(dtype) == "bf16" ? "BF16" : "F16");
  }
  expect_contains(
      message_of(ExitCode::kUsage, [&] { export_hf(real_files(), reader, dir / "x", {.dtype = "int8"}); }),
      "wanted fp32, bf16, fp16 or as-is");
}

TEST(HfExport, DescribesATokenizerOfOurOwn) {
  const TempDir dir;
  copy_model("gpt2", dir / "in");
  write_text_file(dir / "words.txt", "one two three two one");
  write_text_file(dir / "in/tokenizer.json", train_bpe({dir / "words.txt"}, {.vocab_size = 260}));
  const CheckpointReader reader(import_hf(real_files(), dir / "in", dir / "run").checkpoint);
  export_hf(real_files(), reader, dir / "out", {});
  EXPECT_EQ(read_file(dir / "out/tokenizer.json"), read_file(dir / "in/tokenizer.json"));
  const Json config = read_json_file(dir / "out/tokenizer_config.json");
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_EQ(read_json_file(dir / "out/special_tokens_map.json")["bos_token"], "<|endoftext|>");
  EXPECT_EQ(read_json_file(dir / "out/config.json")["eos_token_id"], 0);  // the import's own
}

TEST(HfExport, OverwritesNothing) {
  const TempDir dir;
  const CheckpointReader reader = imported(dir, "mpt");
  export_hf(real_files(), reader, dir / "out", {});
  expect_contains(message_of(ExitCode::kUsage, [&] { export_hf(real_files(), reader, dir / "out", {}); }),
                  "not overwritten");
}

TEST(HfExport, LeavesNothingOfAnExportThatFailed) {
  const TempDir dir;
  const CheckpointReader reader = imported(dir, "mpt");
  int num_failures = 0;
  for (int call = 1; call < 100; ++call) {
    FaultyFiles files(call);
    try {
      export_hf(files, reader, dir / "out", {.shard_bytes = 30000});
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage) << error.what();
      EXPECT_FALSE(std::filesystem::exists(dir / "out")) << "after call " << call;
      ++num_failures;
    }
  }
  EXPECT_GT(num_failures, 10);
  EXPECT_TRUE(std::filesystem::exists(dir / "out/config.json"));
}

}  // namespace
}  // namespace tycho
