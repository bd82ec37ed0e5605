// CORE as the program measures it: stand-in files for the 22 tasks, and a model whose answers are known by
// hand.
#include <cmath>
#include <cstring>

#include "tests/host/shell.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

constexpr int kWidth = 8;

/// A task's file, how many of its items the model answers right, and the accuracy of guessing.
struct StandIn {
  const char *label, *folder, *file;
  char kind;  // of words, a choice between `options`, or a schema
  int options;
  double baseline;
  int right, shots;
};
constexpr int kItems = 12;
/// Sizes and right answers of jeopardy's categories: their accuracies, 3/4 and 1/4, have equal weight.
constexpr int kScience = 16, kHistory = 12, kRightScience = 12, kRightHistory = 3;

const std::vector<StandIn> kTasks = {
    {"jeopardy", "world_knowledge", "jeopardy_all", 'w', 0, 0, 0, 10},
    {"bigbench_qa_wikidata", "world_knowledge", "bigbench_qa_wikidata", 'w', 0, 0, 6, 10},
    {"arc_easy", "world_knowledge", "arc_easy", 'c', 4, 0.25, 9, 10},
    {"arc_challenge", "world_knowledge", "arc_challenge", 'c', 4, 0.25, 3, 10},
    {"copa", "commonsense_reasoning", "copa", 'c', 2, 0.5, 12, 0},
    {"commonsense_qa", "commonsense_reasoning", "commonsense_qa", 'c', 5, 0.403, 7, 10},
    {"piqa", "commonsense_reasoning", "piqa", 'c', 2, 0.5, 5, 10},
    {"openbook_qa", "commonsense_reasoning", "openbook_qa", 'c', 4, 0.25, 0, 0},
    {"hellaswag_zeroshot", "language_understanding", "hellaswag", 'c', 4, 0.25, 8, 0},
    {"lambada_openai", "language_understanding", "lambada_openai", 'w', 0, 0, 1, 0},
    {"hellaswag", "language_understanding", "hellaswag", 'c', 4, 0.25, 8, 10},
    {"winograd", "language_understanding", "winograd_wsc", 's', 2, 0.5, 11, 0},
    {"winogrande", "language_understanding", "winogrande", 's', 2, 0.5, 4, 0},
    {"bigbench_language_identification", "language_understanding", "bigbench_language_identification", 'c',
     11, 0.25, 2, 10},
    {"bigbench_dyck_languages", "symbolic_problem_solving", "bigbench_dyck_languages", 'w', 0, 0, 10, 10},
    {"agi_eval_lsat_ar", "symbolic_problem_solving", "agi_eval_lsat_ar", 'c', 5, 0.25, 6, 3},
    {"bigbench_cs_algorithms", "symbolic_problem_solving", "bigbench_cs_algorithms", 'w', 0, 0, 0, 10},
    {"bigbench_operators", "symbolic_problem_solving", "bigbench_operators", 'w', 0, 0, 12, 10},
    {"bigbench_repeat_copy_logic", "symbolic_problem_solving", "bigbench_repeat_copy_logic", 'w', 0, 0, 5,
     10},
    {"squad", "reading_comprehension", "squad", 'w', 0, 0, 4, 10},
    {"coqa", "reading_comprehension", "coqa", 'w', 0, 0, 3, 0},
    {"boolq", "reading_comprehension", "boolq", 'c', 2, 0.62, 9, 10}};

/// An item that a model which always goes on with "yes", and with "ran" rather after "cat" than after "dog",
/// gets right or wrong.
Json item(const StandIn& task, int i, bool right) {
  const std::string number = std::to_string(i);
  if (task.kind == 'w')
    return {{"context", "Word " + number + ":"},
            {"continuation", std::string(i % 2 == 0 ? "yes " : "") + (right ? "yes" : "no")}};
  if (task.kind == 's')
    return {{"context_options",
             i % 2 == 0 ? std::vector{"The cat", "The dog"} : std::vector{"The dog", "The cat"}},
            {"continuation", "ran"},
            {"gold", (i + (right ? 0 : 1)) % 2}};
  // The mean over tokens decides: "yes yes" is as good as "yes", "no" is worse than both.
  std::vector<std::string> choices(static_cast<size_t>(task.options), i % 3 == 0 ? "no no" : "no");
  const int yes = i % task.options;
  choices[static_cast<size_t>(yes)] = i % 2 == 0 ? "yes yes" : "yes";
  return {{"query", "Is it " + number + "?"},
          {"choices", choices},
          {"gold", right ? yes : (yes + 1) % task.options}};
}

class CoreEval : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    ::setenv("TYCHO_CORE_DATA", (folder_ / "data").c_str(), 1);
    for (const StandIn& task : kTasks) write_task(task);
    write("yes no cat dog ran a Word Is it The Answer: 1 2 3 4 5 6 7 8 9 0 ? yes no cat dog ran yes no\n",
          "a.txt");
    ASSERT_EQ(here("for i in 1 2 3 4 5 6; do cat a.txt a.txt > b.txt && mv b.txt a.txt; done").code, 0);
    fs::create_directories(folder_ / "hf");
    ASSERT_EQ(here("tycho tokenizer train a.txt --vocab-size 320 --out hf/tokenizer.json").code, 0);
    write_model();
    const Outcome converted = here("tycho convert hf model");
    ASSERT_EQ(converted.code, 0) << converted.output;
  }
  void TearDown() override {
    ::unsetenv("TYCHO_CORE_DATA");
    ShellTest::TearDown();
  }

  void write_task(const StandIn& task) const {
    fs::create_directories(folder_ / "data" / task.folder);
    std::ofstream out(folder_ / "data" / task.folder / (std::string(task.file) + ".jsonl"));
    const auto add = [&](int items, int right, const char* category) {
      for (int i = 0; i < items; ++i) {
        Json line = item(task, i, i < right);
        if (category != nullptr) line["category"] = category;
        out << line.dump() << "\n";
      }
    };
    if (std::string(task.label) != "jeopardy") return add(kItems, task.right, nullptr);
    add(kScience, kRightScience, "science");
    add(kHistory, kRightHistory, "history");
  }

  /// Writes a Llama whose layers add nothing: the next token depends on the class of the newest one.
  void write_model() const {
    const Json vocab =
        parse_json(read_file(folder_ / "hf/tokenizer.json"), "tokenizer").at("model").at("vocab");
    const auto id = [&](const char* word) { return vocab.at("\u0120" + std::string(word)).get<size_t>(); };
    const size_t num_tokens = 320;
    std::vector<float> embedding(num_tokens * kWidth), head(num_tokens * kWidth);
    for (size_t token = 0; token < num_tokens; ++token) {
      const size_t of = token == id("cat") ? 1 : token == id("dog") ? 2 : 0;
      embedding[token * kWidth + of] = 1;
    }
    head[id("yes") * kWidth] = 2, head[id("no") * kWidth] = 1;
    head[id("ran") * kWidth + 1] = 3, head[id("ran") * kWidth + 2] = 1;
    Json header;
    std::string bytes;
    const auto add = [&](const std::string& name, std::vector<size_t> shape,
                         const std::vector<float>& values) {
      const size_t begin = bytes.size();
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, bytes.size()}}};
    };
    const std::vector<float> ones(kWidth, 1), zeros(kWidth * kWidth);
    add("model.embed_tokens.weight", {num_tokens, kWidth}, embedding);
    add("lm_head.weight", {num_tokens, kWidth}, head);
    add("model.norm.weight", {kWidth}, ones);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      add(std::string("model.layers.0.") + norm + ".weight", {kWidth}, ones);
    for (const char* matrix :
         {"self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down"})
      add(std::string("model.layers.0.") + matrix + "_proj.weight", {kWidth, kWidth}, zeros);
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    std::ofstream(folder_ / "hf/model.safetensors", std::ios::binary) << file << text << bytes;
    write(Json{{"architectures", {"LlamaForCausalLM"}},
               {"model_type", "llama"},
               {"hidden_size", kWidth},
               {"intermediate_size", kWidth},
               {"num_attention_heads", 1},
               {"num_key_value_heads", 1},
               {"num_hidden_layers", 1},
               {"vocab_size", num_tokens},
               {"max_position_embeddings", 512},
               {"rms_norm_eps", 1e-6},
               {"tie_word_embeddings", false},
               {"torch_dtype", "float32"}}
              .dump(),
          "hf/config.json");
  }

  /// Returns the scores of all tasks and their averages, by the names of the metrics.
  static std::map<std::string, double> by_hand() {
    std::map<std::string, double> wanted;
    std::map<std::string, std::vector<double>> groups;
    for (const StandIn& task : kTasks) {
      const std::string name =
          "metrics/" + std::string(task.label) + "/" + std::to_string(task.shots) + "-shot/";
      const char* metric =
          task.kind == 'w' ? "InContextLearningLMAccuracy" : "InContextLearningMultipleChoiceAccuracy";
      double accuracy = static_cast<double>(task.right) / kItems;
      if (std::string(task.label) == "jeopardy") {
        wanted[name + "science/" + metric] = double{kRightScience} / kScience;
        wanted[name + "history/" + metric] = double{kRightHistory} / kHistory;
        accuracy = 0.5;
      } else {
        wanted[name + metric] = accuracy;
      }
      const double centred = (accuracy - task.baseline) / (1 - task.baseline);
      wanted[kScores + task.label] = centred;
      groups["core"].push_back(centred), groups[task.folder].push_back(centred);
    }
    for (const auto& [group, scores] : groups) {
      double sum = 0;
      for (const double score : scores) sum += score;
      wanted[kScores + group] = sum / static_cast<double>(scores.size());
    }
    return wanted;
  }
  static inline const std::string kScores = "icl/metrics/eval_gauntlet/";
};

TEST_F(CoreEval, OfACheckpointHasTheScoresThatTheFilesOfTheTasksGive) {
  const Outcome outcome =
      here("tycho eval model --icl " TYCHO_SOURCE_DIR "/recipes/tasks/core.lua --device cpu --json 2> notes");
  ASSERT_EQ(outcome.code, 0) << outcome.output << here("cat notes").output;
  const Json json = parse_json(outcome.output, "eval");
  std::map<std::string, double> measured;
  for (const auto& [name, value] : json.at("metrics").items()) measured[name] = value;
  for (const auto& [name, value] : by_hand()) {
    ASSERT_TRUE(measured.contains(name)) << name;
    EXPECT_NEAR(measured.at(name), value, 1e-12) << name;
    measured.erase(name);
  }
  EXPECT_NEAR(by_hand().at(kScores + "core"), 0.343674446127501, 1e-14) << "with a pocket calculator";
  EXPECT_TRUE(measured.empty()) << measured.begin()->first;
  EXPECT_FALSE(json.contains("left_out")) << json;
  EXPECT_EQ(json.at("items").at("jeopardy/10-shot/science"), kScience);
  EXPECT_EQ(json.at("items").at("boolq/10-shot"), kItems);
}

TEST_F(CoreEval, IsACurveOfARun) {
  fs::create_directories(folder_ / "tasks");
  fs::copy_file(TYCHO_SOURCE_DIR "/recipes/tasks/core.lua", folder_ / "tasks/core.lua");
  write(
      "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\n"
      "r.model = t.model.hf { path = \"hf\" }\nr.tokenizer = \"hf/tokenizer.json\"\n"
      "r.optimizer = t.optim.adamw { lr = 1e-6 }\nr.train_data = t.data.text { path = \"a.txt\" }\n"
      "r.seq_len, r.global_batch, r.max_duration = 16, \"2sp\", \"1ba\"\nr.run_dir, r.device = \"run\", "
      "\"cpu\"\n"
      "r.icl = require \"tasks.core\"\nr.icl.first = true\nreturn r\n");
  const Outcome run = here("tycho run x.lua");
  ASSERT_EQ(run.code, 0) << run.output;
  std::ifstream lines(folder_ / "run/metrics.jsonl");
  double core = NAN;
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json(line, "metrics.jsonl");
    if (json.at("step") == 0 && json.contains(kScores + "core")) core = json.at(kScores + "core");
  }
  EXPECT_NEAR(core, by_hand().at(kScores + "core"), 1e-12);
}

// DCLM: no score without one of the 22.
TEST_F(CoreEval, EndsBeforeTheFirstTaskIfAFileIsMissing) {
  fs::remove(folder_ / "data/reading_comprehension/coqa.jsonl");
  const Outcome outcome =
      here("tycho eval model --icl " TYCHO_SOURCE_DIR "/recipes/tasks/core.lua --device cpu");
  EXPECT_NE(outcome.code, 0);
  EXPECT_CONTAINS(outcome.output, "reading_comprehension/coqa.jsonl");
  EXPECT_EQ(outcome.output.find("shot"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tycho
