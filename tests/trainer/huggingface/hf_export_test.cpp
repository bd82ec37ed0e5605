// Exported folders: what transformers would read, and round trips to the byte.
#include "trainer/huggingface/hf_export.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/expression/activation_functions.h"
#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/families/hf_family.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/huggingface/hf_tokenizer.h"

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

/// Every MPT that LLM Foundry's own class has loaded from an export, as foundry_exports.py wrote it down.
TEST(HfExport, WritesMptsAsLlmFoundryLoadsThem) {
  const std::string golden = TYCHO_GOLDEN_DIR;
  const Json accepted = read_json_file(golden + "/foundry_exports.json");
  const auto cases = std::filesystem::directory_iterator(golden + "/foundry_oracles");
  EXPECT_EQ(std::distance(begin(cases), end(cases)), std::ssize(accepted));
  for (const auto& [name, wanted] : accepted.items()) {
    const TempDir dir;
    const std::string from = golden + "/foundry_oracles/" + name;
    const CheckpointReader reader(import_hf(real_files(), from, dir / "run").checkpoint);
    export_hf(real_files(), reader, dir / "out", {});
    EXPECT_EQ(read_json_file(dir / "out/config.json"), wanted["config"]) << name;
    Json shapes = Json::object();
    for (const SafetensorsEntry& entry : read_safetensors_header(dir / "out/model.safetensors").entries)
      shapes[entry.name] = entry.shape;
    EXPECT_EQ(shapes, wanted["tensors"]) << name;
    const CheckpointReader again(import_hf(real_files(), dir / "out", dir / "again").checkpoint);
    EXPECT_EQ(again.info().manifest.at("recipe").at("model"), reader.info().manifest.at("recipe").at("model"))
        << name;
    for (const std::string& tensor : reader.names())
      EXPECT_EQ(bytes_of(again, tensor), bytes_of(reader, tensor));
  }
}

TEST(HfExport, WritesKeysThatLlmFoundryTakes) {
  const auto written = [](const MptConfig& model, const Json& imported = Json()) {
    return write_hf_config({{model}}, 1024, imported);
  };
  MptConfig model;
  EXPECT_FALSE(written(model).json["attn_config"].contains("kv_n_heads"));
  model.kv_heads = 1;
  EXPECT_FALSE(written(model).json["attn_config"].contains("kv_n_heads"));
  model.kv_heads = 4;
  EXPECT_EQ(written(model).json["attn_config"]["kv_n_heads"], 4);
  model.positions = PositionKind::kRope;
  EXPECT_EQ(written(model).json["attn_config"]["rope_impl"], "hf");
  EXPECT_FALSE(written(model).json["attn_config"].contains("fused_qkv"));
  const Json dail = {{"attn_config", {{"rope", true}, {"fused_qkv", false}}}};
  EXPECT_EQ(written(model, dail).json["attn_config"]["rope_impl"], "dail");
  EXPECT_EQ(written(model, dail).json["attn_config"]["fused_qkv"], false);
  expect_contains(written(model, dail).warnings.at(1), "needs flash-attn");
  model.head_width = 64;
  EXPECT_EQ(written(model).json["attn_config"]["fused_qkv"], false);
  EXPECT_EQ(written(model, dail).json["attn_config"]["rope_impl"], "hf");
}

TEST(HfExport, WritesTheSequenceLengthOfARunForAModelWithoutOne) {
  LlamaConfig model;
  EXPECT_EQ(write_hf_config({{model}}, 640).json["max_position_embeddings"], 640);
}

TEST(HfExport, KeepsThreeProjectionsThatWereImportedApart) {
  const TempDir dir;
  const std::string from = std::string(TYCHO_GOLDEN_DIR) + "/foundry_oracles/unfused_mqa";
  const CheckpointReader reader(import_hf(real_files(), from, dir / "run").checkpoint);
  export_hf(real_files(), reader, dir / "out", {.dtype = "bf16"});
  EXPECT_EQ(tensors_of_folder(dir / "out"), tensors_of_file(from + "/model.safetensors"));
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
  for (const std::string& name : first.names())
    EXPECT_EQ(bytes_of(first, name), bytes_of(second, name)) << name;
  EXPECT_EQ(first.info().manifest.at("recipe").at("model"), second.info().manifest.at("recipe").at("model"));
}

/// The number that 16 bits stand for, by the definition of the format: sign, exponent, fraction.
double value_of(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - bias - fraction_bits)
                               : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// No neighbour is nearer to x, and of two that are as near the even one was taken.
bool is_nearest(double x, uint16_t bits, int exponent_bits) {
  const double error = std::abs(x - value_of(bits, exponent_bits));
  const auto loses = [&](uint16_t other) {
    const double theirs = std::abs(x - value_of(other, exponent_bits));
    return theirs < error || (theirs == error && bits % 2 == 1);
  };
  const bool at_zero = (bits & 0x7fff) == 0;
  return !loses(static_cast<uint16_t>(bits + 1)) && (at_zero || !loses(static_cast<uint16_t>(bits - 1)));
}

TEST(HfExport, RoundsToTheDtypeThatIsAskedFor) {
  const TempDir dir;
  const CheckpointReader reader = imported(dir, "llama");
  for (const char* dtype : {"bf16", "fp16"}) {
    export_hf(real_files(), reader, dir / dtype, {.dtype = dtype});
    const SafetensorsHeader header = read_safetensors_header(dir / dtype + "/model.safetensors");
    const bool bf16 = std::string(dtype) == "bf16";
    const auto written = tensors_of_file(dir / dtype + "/model.safetensors");
    ASSERT_EQ(written.size(), header.entries.size());
    for (const SafetensorsEntry& entry : header.entries) {
      EXPECT_EQ(entry.dtype, bf16 ? "BF16" : "F16");
      const std::string exact = bytes_of(reader, entry.name), rounded = written.at(entry.name);
      ASSERT_EQ(rounded.size() * 2, exact.size()) << entry.name;
      for (size_t k = 0; k < rounded.size() / 2; ++k) {
        float x;
        uint16_t bits;
        std::memcpy(&x, exact.data() + 4 * k, 4);
        std::memcpy(&bits, rounded.data() + 2 * k, 2);
        ASSERT_TRUE(is_nearest(x, bits, bf16 ? 8 : 5)) << entry.name << "[" << k << "]: " << x;
      }
    }
  }
  expect_contains(
      message_of(ExitCode::kUsage, [&] { export_hf(real_files(), reader, dir / "x", {.dtype = "int8"}); }),
      "expected fp32, bf16, fp16 or as-is");
}

TEST(HfExport, DescribesATokenizerOfOurOwn) {
  const TempDir dir;
  copy_model("gpt2", dir / "in");
  write_text_file(dir / "words.txt", "one two three two one");
  write_text_file(dir / "in/tokenizer.json", train_bpe({{.path = dir / "words.txt"}}, {.vocab_size = 260}));
  const CheckpointReader reader(import_hf(real_files(), dir / "in", dir / "run").checkpoint);
  export_hf(real_files(), reader, dir / "out", {});
  EXPECT_EQ(read_file(dir / "out/tokenizer.json"), read_file(dir / "in/tokenizer.json"));
  const Json config = read_json_file(dir / "out/tokenizer_config.json");
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_EQ(read_json_file(dir / "out/special_tokens_map.json")["bos_token"], "<|endoftext|>");
  EXPECT_EQ(read_json_file(dir / "out/config.json")["eos_token_id"], 0);  // the import's own
}

/// A checkpoint of a run from scratch of a family, with files of a tokenizer beside it.
CheckpointReader trained(const TempDir& dir, const char* family, std::map<std::string, std::string> files) {
  CheckpointInfo info = import_hf(real_files(), golden_model(family), dir / "source").checkpoint;
  const CheckpointReader source(info);
  CheckpointMeta meta{.train_state = info.manifest.at("train_state"),
                      .recipe = info.manifest.at("recipe"),
                      .recipe_hash = info.manifest.at("recipe_hash"),
                      .files = std::move(files)};
  std::vector<TensorBytes> tensors;
  for (const std::string& name : source.names()) {
    const auto described = source.describe(name);
    tensors.push_back({name, described.dtype, described.shape, nullptr, described.num_bytes,
                       [&source, name](int64_t begin, void* to, int64_t n) {
                         std::memcpy(to, bytes_of(source, name).data() + begin, static_cast<size_t>(n));
                       }});
  }
  CheckpointStore store(real_files(), dir / "run/checkpoints", /*keep=*/0, /*epoch=*/1);
  return CheckpointReader(store.save(meta, tensors));
}

/// config.json and generation_config.json of an export.
std::pair<Json, Json> exported_configs(const CheckpointReader& reader, const std::string& to) {
  export_hf(real_files(), reader, to, {});
  return {read_json_file(to + "/config.json"), read_json_file(to + "/generation_config.json")};
}

TEST(HfExport, TokenIdsOfARunFromScratchAreThoseOfItsTokenizer) {
  const std::string text = style_file("smollm.json");
  const std::string named = R"({"eos_token": "<|begin|>", "pad_token": "<pad>"})";
  for (const char* family : {"llama", "gpt2", "mpt"})
    for (const std::string& config : {std::string(), std::string("{}"), named}) {
      const TempDir dir;
      std::map<std::string, std::string> files = {{kTokenizerFile, text}};
      if (!config.empty()) files[kTokenizerConfigFile] = config;
      const auto [model, generation] = exported_configs(trained(dir, family, files), dir / "out");
      const int eos = config == named ? 1 : 0;
      EXPECT_EQ(model["eos_token_id"], eos) << family << config;
      EXPECT_EQ(generation["eos_token_id"], eos) << family << config;
      EXPECT_EQ(model["bos_token_id"], 0) << family << config;
      EXPECT_EQ(generation.value("pad_token_id", Json()), config == named ? Json(401) : Json()) << config;
    }
}

TEST(HfExport, TokenIdsComeFromATokenizerModelToo) {
  const TempDir dir;
  const auto reader = trained(dir, "llama", {{kSentencePieceFile, style_file("no_bytes.model")}});
  const auto [model, generation] = exported_configs(reader, dir / "out");
  EXPECT_EQ(model["bos_token_id"], 1);
  EXPECT_EQ(generation["eos_token_id"], 2);
  EXPECT_EQ(generation["pad_token_id"], 3);
  const Json config = read_json_file(dir / "out/tokenizer_config.json");
  EXPECT_EQ(config["tokenizer_class"], "LlamaTokenizer");
  EXPECT_EQ(config["add_bos_token"], false);  // nothing is put before texts in training, either
}

TEST(HfExport, WithoutATokenizerNoTokenEndsTexts) {
  const TempDir dir;
  const auto [model, generation] = exported_configs(trained(dir, "llama", {}), dir / "out");
  EXPECT_TRUE(model.contains("eos_token_id") &&
              model["eos_token_id"].is_null());  // else transformers takes 2
  EXPECT_FALSE(generation.contains("eos_token_id"));
}

TEST(HfExport, ARecipesOwnTokenizerReplacesThatOfTheWeights) {
  std::map<std::string, std::string> files = {
      {kTokenizerFile, "other"},
      {kTokenizerConfigFile, R"({"eos_token": "x"})"},
      {kAddedTokensFile, "{}"},
      {"generation_config.json", R"({"eos_token_id": 7})"},
      {kKeptHfConfig, R"({"model_type": "llama", "eos_token_id": 7, "bos_token_id": 8})"}};
  auto same = files;
  keep_tokenizer("other", {}, same);
  EXPECT_EQ(same, files);
  keep_tokenizer("{}", {{kSpecialTokensMapFile, R"({"eos_token": "y"})"}}, files);
  EXPECT_EQ(files.at(kTokenizerFile), "{}");
  EXPECT_EQ(parse_json(files.at(kKeptHfConfig), "kept"), (Json{{"model_type", "llama"}}));
  EXPECT_TRUE(files.contains(kSpecialTokensMapFile));
  for (const char* gone : {kTokenizerConfigFile, kAddedTokensFile, "generation_config.json"})
    EXPECT_FALSE(files.contains(gone)) << gone;
}

TEST(HfExport, OverwritesNothing) {
  const TempDir dir;
  const CheckpointReader reader = imported(dir, "mpt");
  export_hf(real_files(), reader, dir / "out", {});
  expect_contains(message_of(ExitCode::kUsage, [&] { export_hf(real_files(), reader, dir / "out", {}); }),
                  "not overwritten");
}

TEST(HfExport, IsThereOnceItIsWhole) {
  const TempDir dir;
  const CheckpointReader reader = imported(dir, "mpt");
  // What a killed one leaves, and what it was in the middle of.
  std::filesystem::create_directories(dir / ".out.partial");
  write_text_file(dir / ".out.partial/model-00001-of-00009.safetensors", "torn");
  bool was_there = false;
  struct Watching : FileOps {
    std::string out;
    bool* was_there;
    std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
      *was_there |= std::filesystem::exists(out);
      return FileOps::create(path, direct, readers);
    }
  } files;
  files.out = dir / "out", files.was_there = &was_there;
  export_hf(files, reader, dir / "out", {.shard_bytes = 30000});
  EXPECT_FALSE(was_there) << "a folder that is read while it is written is torn";
  EXPECT_FALSE(std::filesystem::exists(dir / "out/model-00001-of-00009.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(dir / ".out.partial"));
  EXPECT_TRUE(std::filesystem::exists(dir / "out/config.json"));
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

TEST(HfExport, ReadsAndWritesTheActivationOfAGate) {
  struct Case {
    const char* name;
    Activation activation;
    const char* written;
  };
  Json json = read_json_file(golden_model("llama") + "/config.json");
  for (const Case& c :
       {Case{"gelu", Activation::kGelu, "gelu"}, Case{"gelu_new", Activation::kGeluTanh, "gelu_pytorch_tanh"},
        Case{"swish", Activation::kSilu, "silu"}, Case{"relu", Activation::kRelu, "relu"}}) {
    json["hidden_act"] = c.name;
    const ModelConfig model = read_hf_config(json, "").model;
    EXPECT_EQ(std::get<LlamaConfig>(model.value).activation, FeedForwardActivation(c.activation)) << c.name;
    EXPECT_EQ(write_hf_config(model, 1024).json["hidden_act"], c.written);
  }
  const HfConfigText gemma = write_hf_config({Gemma2Config()}, 1024);
  EXPECT_EQ(gemma.json["hidden_activation"], "gelu_pytorch_tanh");
}

TEST(HfExport, RefusesAnActivationOfTheRecipeInEveryFamily) {
  const auto refuses = [](auto family) {
    family.activation.expression = silu_function(), family.activation.code.at = "recipes/x.lua:7";
    const std::string said = message_of(ExitCode::kRecipe, [&] { write_hf_config({family}, 1024); });
    expect_contains(said, "[model.activation] expected an activation that Hugging Face has a name for");
    expect_contains(said, "recipes/x.lua:7");
  };
  for_each_family(ModelConfig{}, [&](const auto& hf) { refuses(hf.defaults); });
}

}  // namespace
}  // namespace tycho
