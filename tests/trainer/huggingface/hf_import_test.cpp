// Imported folders: fixtures of transformers, and files that are broken or hostile.
#include "trainer/huggingface/hf_import.h"

#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/config_io.h"
#include "trainer/state/train_state.h"

namespace tycho {
namespace {

/// Importing `from` fails with a message that holds `part`, and leaves nothing behind.
void expect_refused(const TempDir& dir, const std::string& from, const std::string& part,
                    ExitCode code = ExitCode::kUnusable) {
  expect_contains(message_of(code, [&] { import_hf(real_files(), from, dir / "out"); }), part);
  EXPECT_FALSE(std::filesystem::exists(dir / "out"));
}

/// A model.safetensors with F32 tensors of zeros.
void write_zeros(const std::string& path,
                 const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
  std::vector<SafetensorsEntry> entries;
  int64_t at = 0;
  for (const auto& [name, shape] : tensors) {
    const int64_t num_bytes = safetensors_num_bytes("F32", shape, name);
    entries.push_back({name, "F32", shape, at, at + num_bytes});
    at += num_bytes;
  }
  write_text_file(path, safetensors_prefix(entries, {}) + std::string(static_cast<size_t>(at), '\0'));
}

TEST(HfImport, KeepsEveryBitOfFp32) {
  for (const char* name : {"llama", "gpt2", "mpt"}) {
    const TempDir dir;
    const ImportReport report = import_hf(real_files(), golden_model(name), dir / "out");
    const CheckpointReader reader(find_checkpoint(dir / "out"));
    reader.verify();
    const auto expected = tensors_of_folder(golden_model(name));
    ASSERT_EQ(reader.names().size(), expected.size());
    int64_t num_elements = 0;
    for (const auto& [tensor, bytes] : expected) {
      EXPECT_EQ(bytes_of(reader, tensor), bytes) << tensor;
      num_elements += static_cast<int64_t>(bytes.size()) / 4;
    }
    EXPECT_EQ(report.num_params, num_elements);
    EXPECT_EQ(report.dtypes, std::vector<std::string>{"F32"});
  }
}

TEST(HfImport, WidensShardsOfBf16) {
  const TempDir dir;
  const ImportReport report = import_hf(real_files(), golden_model("llama_sharded"), dir / "out");
  EXPECT_EQ(report.num_shards, 3);
  EXPECT_EQ(report.dtypes, std::vector<std::string>{"BF16"});
  const CheckpointReader reader(report.checkpoint);
  for (const auto& [name, bytes] : tensors_of_folder(golden_model("llama_sharded"))) {
    const std::string wide = bytes_of(reader, name);
    ASSERT_EQ(wide.size(), 2 * bytes.size());
    for (size_t i = 0; i < bytes.size() / 2; ++i) {
      ASSERT_EQ(wide.substr(4 * i, 2), std::string(2, '\0'));
      ASSERT_EQ(wide.substr(4 * i + 2, 2), bytes.substr(2 * i, 2));
    }
  }
}

TEST(HfImport, RecordsARecipeAndAFreshState) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  write_text_file(dir / "in/tokenizer_config.json", "{}");
  const ImportReport report = import_hf(real_files(), dir / "in", dir / "out");
  const TrainConfig config =
      read_trained_config(report.checkpoint.manifest.at("recipe"), TrainedUse::kModel, "imported");
  EXPECT_EQ(config.model.as<LlamaConfig>().num_kv_heads(), 1);
  EXPECT_EQ(config.run_name, "out");
  EXPECT_EQ(config.seq_len, 128);
  EXPECT_EQ(TrainState::from_json(report.checkpoint.manifest.at("train_state")).step, 0);
  const CheckpointReader reader(report.checkpoint);
  EXPECT_EQ(reader.read_text_file("tokenizer_config.json"), "{}");
  EXPECT_EQ(reader.read_text_file(kKeptHfConfig), read_file(dir / "in/config.json"));
}

TEST(HfImport, NotesATokenizerWithMoreTokensThanTheModel) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  write_text_file(dir / "in/tokenizer.json", style_file("gpt2.json"));
  const ImportReport report = import_hf(real_files(), dir / "in", dir / "out");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(
      report.notes[0],
      "tokenizer.json has 405 tokens, the model 101: the model has nothing for ids from 101 on, and a recipe "
      "for it cannot name this tokenizer");
}

TEST(HfImport, CountsTheTokensThatFilesBesideTheTokenizerAdd) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  write_text_file(dir / "in/tokenizer.json", style_file("gpt2.json"));
  write_text_file(dir / "in/added_tokens.json", R"({"<a>": 405, "<b>": 406})");
  const ImportReport report = import_hf(real_files(), dir / "in", dir / "out");
  ASSERT_EQ(report.notes.size(), 1u);
  expect_contains(report.notes[0], "tokenizer.json has 407 tokens");
}

TEST(HfImport, MakesATokenizerOfVocabularyAndMerges) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  const auto model = SortedJson::parse(style_file("gpt2.json"))["model"];
  write_text_file(dir / "in/vocab.json", model["vocab"].dump());
  write_text_file(dir / "in/merges.txt", "#version: 0.2\n");
  const ImportReport report = import_hf(real_files(), dir / "in", dir / "out");
  EXPECT_TRUE(report.has_tokenizer);
  const auto tokenizer = open_kept_tokenizer(CheckpointReader(report.checkpoint));
  EXPECT_EQ(tokenizer->encode("th").size(), 2u);
  EXPECT_EQ(tokenizer->size(), 400);
  write_text_file(dir / "in/tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  const ImportReport other = import_hf(real_files(), dir / "in", dir / "other");
  EXPECT_FALSE(other.has_tokenizer);
  expect_contains(other.notes.back(), "vocab.json is kept, but Tycho cannot use it");
}

TEST(HfImport, MakesATokenizerOfTekken) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  const std::string tekken = std::string(TYCHO_GOLDEN_DIR) + "/tekken/v3/tekken.json";
  std::filesystem::copy_file(tekken, dir / "in/tekken.json");
  const ImportReport report = import_hf(real_files(), dir / "in", dir / "out");
  expect_contains(report.notes.back(), "tokenizer.json has 990 tokens, the model 101");
  const CheckpointReader made(report.checkpoint);
  EXPECT_EQ(open_kept_tokenizer(made)->encode("the</s>").back(), 2);
  EXPECT_EQ(made.read_text_file("tekken.json"), read_file(tekken)) << "kept as it is, for other programs";
  write_text_file(dir / "in/tekken.json", "{}");
  const ImportReport other = import_hf(real_files(), dir / "in", dir / "other");
  expect_contains(other.notes.back(), "tekken.json is kept, but Tycho cannot use it");
}

TEST(HfImport, KnowsOtherPrefixesAndBuffers) {
  const TempDir dir;
  copy_model("gpt2", dir / "in");
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors = {
      {"h.0.attn.bias", {1, 1, 32, 32}}, {"h.0.attn.masked_bias", {}}, {"lm_head.weight", {101, 48}}};
  for (const SafetensorsEntry& entry : read_safetensors_header(dir / "in/model.safetensors").entries)
    tensors.emplace_back(entry.name.substr(std::string("transformer.").size()), entry.shape);
  write_zeros(dir / "in/model.safetensors", tensors);
  const ImportReport report = import_hf(real_files(), dir / "in", dir / "out");
  EXPECT_EQ(report.ignored,
            (std::vector<std::string>{"h.0.attn.bias", "h.0.attn.masked_bias", "lm_head.weight"}));
}

TEST(HfImport, StacksAnUnfusedMpt) {
  const TempDir dir;
  copy_model("mpt", dir / "in");
  const std::string path = dir / "in/model.safetensors";
  const auto fused = tensors_of_file(path);
  std::vector<SafetensorsEntry> entries;
  std::string data;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, const std::string& bytes) {
    const auto at = static_cast<int64_t>(data.size());
    entries.push_back({name, "F32", std::move(shape), at, at + static_cast<int64_t>(bytes.size())});
    data += bytes;
  };
  for (const SafetensorsEntry& entry : read_safetensors_header(path).entries) {
    const std::string& bytes = fused.at(entry.name);
    const size_t at = entry.name.find("Wqkv");
    if (at == std::string::npos) {
      add(entry.name, entry.shape, bytes);
      continue;
    }
    for (size_t part = 0; part < 3; ++part)
      add(entry.name.substr(0, at) + std::vector{"Wq", "Wk", "Wv"}[part] + ".weight", {24, 24},
          bytes.substr(part * bytes.size() / 3, bytes.size() / 3));
  }
  write_text_file(path, safetensors_prefix(entries, {}) + data);
  const CheckpointReader reader(import_hf(real_files(), dir / "in", dir / "out").checkpoint);
  for (const auto& [name, bytes] : fused) EXPECT_EQ(bytes_of(reader, name), bytes) << name;
}

/// Three tensors, and how many more.
TEST(HfImport, ListsWhatDoesNotFit) {
  const auto misfits = [](const char* key, const Json& value) {
    const TempDir dir;
    copy_model("llama", dir / "in");
    edit_config(dir / "in", [&](Json& json) { json[key] = value; });
    const std::string text =
        message_of(ExitCode::kUnusable, [&] { import_hf(real_files(), dir / "in", dir / "out"); });
    EXPECT_FALSE(std::filesystem::exists(dir / "out"));
    expect_contains(text, " more");
    return text;
  };
  expect_contains(misfits("num_hidden_layers", 1), "(F32 [48]) does not belong to any parameter");
  expect_contains(misfits("num_key_value_heads", 2),
                  "model.layers.0.self_attn.k_proj.weight: the model expects [16, 48], the file has [8, 48]");
  expect_contains(misfits("mlp_bias", true), "model.layers.0.mlp.gate_proj.bias [40] is missing");
}

TEST(HfImport, RefusesATiedHeadThatIsNotTheEmbedding) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  edit_config(dir / "in", [](Json& json) { json["tie_word_embeddings"] = true; });
  expect_refused(dir, dir / "in", "lm_head.weight differs from the embedding");
}

TEST(HfImport, RefusesFilesThatEndEarly) {
  const TempDir dir;
  for (const auto& [name, file] : {std::pair{"llama", "model.safetensors"},
                                   std::pair{"llama_sharded", "model-00002-of-00003.safetensors"}}) {
    const std::string in = copy_model(name, dir / name);
    for (const uintmax_t size :
         {uintmax_t{0}, uintmax_t{7}, uintmax_t{100}, std::filesystem::file_size(in + "/" + file) - 1}) {
      std::filesystem::resize_file(in + "/" + file, size);
      expect_refused(dir, in, file);
      std::filesystem::copy_file(golden_model(name) + "/" + file, in + "/" + file,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  }
}

TEST(HfImport, KeepsAnIndexInsideItsFolder) {
  const TempDir dir;
  copy_model("llama_sharded", dir / "in");
  copy_model("llama_sharded", dir / "elsewhere");
  const std::string index = dir / "in/model.safetensors.index.json";
  for (const char* file : {"../elsewhere/model-00001-of-00003.safetensors", "/etc/passwd", "config.json", "",
                           ".", "sub/model.safetensors"}) {
    Json json = read_json_file(golden_model("llama_sharded") + "/model.safetensors.index.json");
    json["weight_map"]["model.embed_tokens.weight"] = file;
    write_text_file(index, json.dump());
    expect_refused(dir, dir / "in", "not a .safetensors file of this folder");
  }
}

TEST(HfImport, HoldsAnIndexAgainstItsShards) {
  const TempDir dir;
  const std::string in = copy_model("llama_sharded", dir / "in"),
                    index = in + "/model.safetensors.index.json";
  const Json good = read_json_file(index);
  Json json = good;
  json["weight_map"]["lm_head.weight"] = "model-00001-of-00003.safetensors";
  write_text_file(index, json.dump());
  expect_refused(dir, in, "lm_head.weight is not in");
  json = good;
  json["weight_map"].erase("model.norm.weight");
  write_text_file(index, json.dump());
  expect_refused(dir, in, "contains model.norm.weight");
  for (const char* text : {"[]", "{}", "{\"weight_map\": {}}", "{\"weight_map\": {\"a\": 1}}", "not json"}) {
    write_text_file(index, text);
    expect_refused(dir, in, "model.safetensors.index.json");
  }
  write_text_file(index, good.dump());
  std::filesystem::remove(in + "/model-00003-of-00003.safetensors");
  expect_refused(dir, in, "model-00003-of-00003.safetensors is missing");
}

TEST(HfImport, SaysWhatToDoAboutPickles) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  std::filesystem::rename(dir / "in/model.safetensors", dir / "in/pytorch_model.bin");
  expect_refused(dir, dir / "in", "safe_serialization=True");
  std::filesystem::remove(dir / "in/pytorch_model.bin");
  expect_refused(dir, dir / "in", "download the weights too");
}

TEST(HfImport, RejectsDtypesThatCannotBeWeights) {
  const TempDir dir;
  copy_model("llama", dir / "in");
  const std::string path = dir / "in/model.safetensors";
  std::string bytes = read_file(path);
  const size_t at = bytes.find("\"F32\"");
  bytes.replace(at, 5, "\"I32\"");
  write_text_file(path, bytes);
  expect_refused(dir, dir / "in", "lm_head.weight is I32");
}

TEST(HfImport, OverwritesNothing) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "out");
  write_text_file(dir / "out/mine", "x");
  expect_contains(
      message_of(ExitCode::kUsage, [&] { import_hf(real_files(), golden_model("llama"), dir / "out"); }),
      "not overwritten");
  EXPECT_EQ(read_file(dir / "out/mine"), "x");
}

}  // namespace
}  // namespace tycho
