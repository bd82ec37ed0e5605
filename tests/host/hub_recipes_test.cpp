// Recipes that name models and tokenizers of the hub: what is asked, and what a run keeps to.
#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/host/shell.h"
#include "tests/trainer/hub/hub_server.h"
#include "tests/trainer/rendezvous/reserved_port.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

class HubRecipes : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    for (const char* name :
         {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "http_proxy"})
      ::unsetenv(name);
    ::setenv("HF_HOME", (folder_ / "home").c_str(), 1);
    ::setenv("HF_ENDPOINT", server_.url().c_str(), 1);
    const fs::path model = TYCHO_SOURCE_DIR "/tests/golden/hf/llama_sharded";
    for (const auto& entry : fs::directory_iterator(model)) {
      const std::string name = entry.path().filename();
      if (name == "expected.safetensors") continue;
      server_.add_file("models/acme/tiny", name, bytes_of(entry.path()), name.ends_with(".safetensors"));
    }
    server_.add_file("models/acme/tiny", "pytorch_model.bin", "not wanted", true);
    write("one two three four five six seven eight nine ten\n", "a.txt");
    ASSERT_EQ(here("for i in 1 2 3 4 5 6 7 8; do cat a.txt a.txt > b.txt && mv b.txt a.txt; done").code, 0);
    ASSERT_EQ(here("tycho tokenizer train a.txt --vocab-size 257 --out tokenizer.json").code, 0);
    server_.add_file("models/acme/words", "tokenizer.json", bytes_of(folder_ / "tokenizer.json"));
    server_.add_file("models/acme/words", "tokenizer_config.json", "{}");
    server_.add_file("models/acme/words", "README.md", "not wanted");
    write(recipe("t.model.llama { width = 32, heads = 2, layers = 1, ffn_width = 64 }"));
  }
  void TearDown() override {
    EXPECT_TRUE(server_.problems().empty()) << server_.problems().front();
    ShellTest::TearDown();
  }

  static std::string recipe(const std::string& model) {
    return "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\n"
           "r.model = " +
           model +
           "\nr.tokenizer = \"hf://acme/words\"\n"
           "r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.train_data = t.data.text { path = \"a.txt\" }\n"
           "r.seq_len, r.global_batch, r.max_duration = 16, \"2sp\", \"4ba\"\nr.ckpt.every = \"2ba\"\n"
           "r.run_dir = \"run\"\nreturn r\n";
  }

  /// Returns the command of one of two ranks; its output goes to rank_N.log.
  std::string of_rank(int number, const std::string& with, const std::string& words) const {
    return fmt::format(
        "env TYCHO_NUM_RANKS=2 TYCHO_NUM_LOCAL_RANKS=2 TYCHO_ADDRESS=127.0.0.1 "
        "TYCHO_TOKEN=secret-of-two-ranks TYCHO_PORT={0} TYCHO_RANK={1} TYCHO_LOCAL_RANK={1} "
        "{2} " TYCHO_PROGRAM " {3} > rank_{1}.log 2>&1",
        port_.number(), number, with, words);
  }

  testing::HubServer server_;
  ReservedPort port_;
};

const std::string kFirst = "0123456789abcdef0123456789abcdef01234567";
const std::string kSecond = "89abcdef0123456789abcdef0123456789abcdef";

TEST_F(HubRecipes, AreCheckedWithoutARequest) {
  for (const char* verb : {"check", "config", "plan"}) {
    const Outcome outcome = here(std::string("tycho ") + verb + " x.lua");
    EXPECT_EQ(outcome.code, 12) << outcome.output;
    EXPECT_CONTAINS(outcome.output, "tycho fetch");
  }
  EXPECT_EQ(server_.num_requests(), 0);
}

TEST_F(HubRecipes, NeedNoRequestAfterAFetch) {
  const Outcome fetched = here("tycho fetch x.lua");
  ASSERT_EQ(fetched.code, 0) << fetched.output;
  EXPECT_CONTAINS(fetched.output, "hf://acme/words@" + kFirst);
  const int before = server_.num_requests();
  EXPECT_GT(before, 0);
  for (const char* command : {"tycho check x.lua", "tycho plan x.lua", "tycho run x.lua"}) {
    const Outcome outcome = here(command);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
  EXPECT_CONTAINS(here("tycho config x.lua").output, "hf://acme/words@" + kFirst);
  EXPECT_EQ(server_.num_requests(), before);
  EXPECT_CONTAINS(bytes_of(folder_ / "run/recipe.lua"), "hf://acme/words@" + kFirst);
  EXPECT_CONTAINS(bytes_of(folder_ / "run/provenance.json"), "hub.hf://acme/words@main");
}

TEST_F(HubRecipes, AreFetchedByTheRunItself) {
  server_.token = "hf_verysecretvalue";
  ::setenv("HF_TOKEN", server_.token.c_str(), 1);
  const Outcome outcome = here("tycho run x.lua");
  ::unsetenv("HF_TOKEN");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(here("grep -r verysecret run home").code, 1);
  for (const std::string& request : server_.requests())
    EXPECT_EQ(request.find("README.md"), std::string::npos) << request;
}

TEST_F(HubRecipes, AreFetchedOnceByTheRanksOfAMachine) {
  const Outcome outcome = here("tycho launch -n 2 run x.lua global_batch=4sp");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  int downloads = 0;
  for (const std::string& request : server_.requests())
    downloads += request.find("GET") != std::string::npos && request.ends_with("/tokenizer.json") ? 1 : 0;
  EXPECT_EQ(downloads, 1) << outcome.output;
}

TEST_F(HubRecipes, ResumeAtTheCommitTheyBeganWith) {
  const Outcome first = here("tycho run x.lua --until 2ba");
  ASSERT_EQ(first.code, 0) << first.output;
  server_.add("models/acme/words").commit = kSecond;
  server_.add("models/acme/words").revisions[kFirst] = kFirst;
  ASSERT_EQ(here("tycho fetch hf://acme/words").code, 0);
  EXPECT_CONTAINS(here("tycho config x.lua").output, kSecond);
  const Outcome second = here("tycho run x.lua");
  EXPECT_EQ(second.code, 0) << second.output;
  EXPECT_CONTAINS(bytes_of(folder_ / "run/recipe.lua"), "hf://acme/words@" + kFirst);
  EXPECT_CONTAINS(second.output, "step 2");
}

// Two machines, fetched at different times: each has a cache of its own, and a commit of its own for main.
TEST_F(HubRecipes, TakeTheCommitOfRankZeroWhereCachesDiffer) {
  for (const char* cache : {"other", "offline"})
    ASSERT_EQ(here("HF_HOME=" + (folder_ / cache).string() + " tycho fetch x.lua").code, 0);
  server_.add("models/acme/words").commit = kSecond;
  server_.add("models/acme/words").revisions[kFirst] = kFirst;
  const auto rank = [&](int number, const std::string& run_dir, const std::string& with = "") {
    return of_rank(number, with, "run x.lua global_batch=4sp run_dir=" + run_dir);
  };
  const Outcome both =
      here("true; " + rank(0, "run") + " & " + rank(1, "run", "HF_HOME=" + (folder_ / "other").string()) +
           "; one=$?; wait $!; echo codes $? $one");
  EXPECT_CONTAINS(both.output, "codes 0 0") << bytes_of(folder_ / "rank_1.log");
  EXPECT_CONTAINS(bytes_of(folder_ / "rank_1.log"),
                  "rank 1 takes rank 0's commit of hf://acme/words@main, " + kSecond);
  EXPECT_EQ(bytes_of(folder_ / "rank_0.log").find("[hub]"), std::string::npos);
  EXPECT_CONTAINS(bytes_of(folder_ / "run/recipe.lua"), "hf://acme/words@" + kSecond);
  const Outcome cannot = here("true; " + rank(0, "run2") + " & zero=$!; " +
                              rank(1, "run2", "HF_HUB_OFFLINE=1 HF_HOME=" + (folder_ / "offline").string()) +
                              "; echo code $?; kill -TERM $zero; wait");
  EXPECT_CONTAINS(cannot.output, "code 12");
  EXPECT_CONTAINS(bytes_of(folder_ / "rank_1.log"), "tycho fetch hf://acme/words@" + kSecond);
}

TEST_F(HubRecipes, AtThePromptOfSeveralRanksTakeTheCommitOfRankZero) {
  ASSERT_EQ(here("HF_HOME=" + (folder_ / "other").string() + " tycho fetch x.lua").code, 0);
  server_.add("models/acme/words").commit = kSecond;
  server_.add("models/acme/words").revisions[kFirst] = kFirst;
  write("build(r);\ntrainer:step(1)\nr.run_dir\n", "entries");
  const std::string words = "repl x.lua global_batch=4sp";
  const Outcome both = here("true; " + of_rank(0, "", words + " < entries") + " & " +
                            of_rank(1, "HF_HOME=" + (folder_ / "other").string(), words) +
                            "; one=$?; wait $!; echo codes $? $one");
  const std::string said = bytes_of(folder_ / "rank_0.log");
  EXPECT_CONTAINS(both.output, "codes 0 0") << said << bytes_of(folder_ / "rank_1.log");
  EXPECT_CONTAINS(said, "loss");
  EXPECT_CONTAINS(bytes_of(folder_ / "run/recipe.lua"), "hf://acme/words@" + kSecond);
}

TEST_F(HubRecipes, StartFromPretrainedWeights) {
  ASSERT_EQ(
      here("printf '\\001\\000\\002\\000' > t.bin; for i in 1 2 3 4 5 6 7 8; do cat t.bin t.bin > u.bin "
           "&& mv u.bin t.bin; done")
          .code,
      0);
  write(
      "local t = require \"tycho\"\nlocal r = t.recipe \"p\"\n"
      "r.model = t.model.hf { path = \"hf://acme/tiny\" }\nr.optimizer = t.optim.adamw { lr = 1e-3 }\n"
      "r.train_data = t.data.tokens { path = \"t.bin\", format = \"raw\", dtype = \"uint16\" }\n"
      "r.seq_len, r.global_batch, r.max_duration = 16, \"2sp\", \"2ba\"\nr.run_dir = \"p\"\nreturn r\n",
      "p.lua");
  const Outcome checked = here("tycho check p.lua");
  EXPECT_EQ(checked.code, 12) << checked.output;
  EXPECT_CONTAINS(checked.output, "tycho fetch");
  const Outcome run = here("tycho run p.lua");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_CONTAINS(bytes_of(folder_ / "p/recipe.lua"), "hf://acme/tiny@" + kFirst);
  for (const std::string& request : server_.requests())
    EXPECT_EQ(request.find("pytorch_model.bin"), std::string::npos) << request;
}

TEST_F(HubRecipes, TrainOnTextsOfTheHub) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "{\"text\": \"one two three four five six seven eight nine ten\"}\n";
  server_.add_file("datasets/acme/texts", "data/train-00000-of-00001.jsonl", lines, true);
  server_.add_file("datasets/acme/texts", "data/test-00000-of-00001.jsonl", "not read", true);
  const std::string local = recipe("t.model.llama { width = 32, heads = 2, layers = 1, ffn_width = 64 }");
  const size_t at = local.find("a.txt");
  write(local.substr(0, at) + "hf://datasets/acme/texts" + local.substr(at + 5), "d.lua");
  const Outcome checked = here("tycho check d.lua");
  EXPECT_EQ(checked.code, 12) << checked.output;
  EXPECT_CONTAINS(checked.output, "tycho fetch");
  const Outcome fetched = here("tycho fetch d.lua");
  ASSERT_EQ(fetched.code, 0) << fetched.output;
  const int before = server_.num_requests();
  for (const char* command : {"tycho check d.lua", "tycho run d.lua", "tycho run d.lua max_duration=6ba"}) {
    const Outcome outcome = here(command);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(outcome.output.find("does not exist yet"), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(server_.num_requests(), before);
  EXPECT_CONTAINS(bytes_of(folder_ / "run/recipe.lua"), "hf://datasets/acme/texts@" + kFirst);
  for (const std::string& request : server_.requests())
    EXPECT_EQ(request.find("test-00000"), std::string::npos) << request;
}

TEST_F(HubRecipes, ModelsAreConverted) {
  const Outcome outcome = here("tycho convert hf://acme/tiny converted && tycho ckpt info converted");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(here("tycho tokenizer encode hf://acme/words 'one two'").code, 0);
}

// Two turns: the second answer sees the first. The same folder on disk says what the answers are.
TEST_F(HubRecipes, ModelsAnswerInAConversation) {
  const fs::path model = TYCHO_SOURCE_DIR "/tests/golden/icl/model";
  for (const auto& entry : fs::directory_iterator(model))
    server_.add_file("models/acme/talk", entry.path().filename(), bytes_of(entry.path()),
                     entry.path().extension() == ".safetensors");
  server_.add_file("models/acme/talk", "pytorch_model.bin", "not wanted", true);
  const auto talk = [&](const std::string& with, const std::string& lines) {
    return here("printf '" + lines + "' | tycho chat " + with + " -t 0 -n 6 --device cpu 2> notes");
  };
  const std::string turns = "the cow that hides\\nand later the fox\\n";
  const Outcome local = talk(model, turns);
  ASSERT_EQ(local.code, 0) << bytes_of(folder_ / "notes");
  server_.token = "hf_verysecretvalue";
  ::setenv("HF_TOKEN", server_.token.c_str(), 1);
  const Outcome first = talk("hf://acme/talk", turns);
  ::unsetenv("HF_TOKEN");
  ASSERT_EQ(first.code, 0) << bytes_of(folder_ / "notes");
  EXPECT_EQ(first.output, local.output);
  EXPECT_EQ(std::count(first.output.begin(), first.output.end(), '\n'), 2) << first.output;
  EXPECT_NE(talk(model, "and later the fox\\n").output, first.output.substr(first.output.find('\n') + 1))
      << "the second turn sees the first";
  EXPECT_EQ(here("grep -r verysecret notes home").code, 1);
  const int before = server_.num_requests();
  EXPECT_EQ(talk("hf://acme/talk", turns).output, local.output);
  EXPECT_EQ(server_.num_requests(), before) << "all is in the cache";
  for (const std::string& request : server_.requests())
    EXPECT_EQ(request.find("pytorch_model.bin"), std::string::npos) << request;
  EXPECT_EQ(talk("hf://acme/absent", turns).code, 12);
  EXPECT_CONTAINS(bytes_of(folder_ / "notes"), "hf://acme/absent");
}

// The folder on disk, and an import of it, say what the answers are.
TEST_F(HubRecipes, ModelsAreEvaluatedAndGenerateText) {
  const std::string model = TYCHO_SOURCE_DIR "/tests/golden/icl/model";
  for (const auto& entry : fs::directory_iterator(model))
    server_.add_file("models/acme/talk", entry.path().filename(), bytes_of(entry.path()),
                     entry.path().extension() == ".safetensors");
  write("{\"context\": \"the cow\", \"continuation\": \" that hides\"}\n", "requests.jsonl");
  write(
      "{\"messages\": [{\"role\": \"user\", \"content\": \"the cow\"}, {\"role\": \"assistant\", "
      "\"content\": "
      "\"and later the fox\"}]}\n",
      "rows.jsonl");
  ASSERT_EQ(here("tycho convert " + model + " imported").code, 0);
  const std::string cpu = " --device cpu 2> notes";
  const auto expect_same = [&](const std::string& verb, const std::string& options) {
    const Outcome local = here(verb + " " + model + options + cpu);
    ASSERT_EQ(local.code, 0) << bytes_of(folder_ / "notes");
    const auto without_first = [](const std::string& text) { return text.substr(text.find('\n') + 1); };
    const auto answer = [&](const std::string& of) {
      const std::string text =
          std::regex_replace(here(verb + " " + of + options + cpu).output, std::regex("  [0-9.]+ s\n"), "\n");
      return text.find(": step ") == std::string::npos ? text : without_first(text);
    };
    EXPECT_EQ(answer("hf://acme/talk"), answer(model)) << bytes_of(folder_ / "notes");
    EXPECT_EQ(answer("imported"), answer(model)) << bytes_of(folder_ / "notes");
  };
  expect_same("tycho generate", " --prompt 'the cow' -t 0 -n 6 --json --logprobs");
  expect_same("tycho eval", " --loglikelihood < requests.jsonl");
  expect_same("tycho eval", " --data rows.jsonl");
  const Outcome evaluated = here("tycho eval hf://acme/talk --data rows.jsonl" + cpu);
  EXPECT_CONTAINS(evaluated.output, "hf://acme/talk@" + kFirst + ": step 0");
  for (const char* options : {" --ema", " --follow", ""}) {
    const Outcome refused = here("tycho eval hf://acme/talk" + std::string(options));
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_CONTAINS(refused.output, "hf://acme/talk");
  }
}

TEST_F(HubRecipes, PathsWithoutTheSchemeAreNeverAskedFor) {
  const Outcome checked = here("tycho check x.lua tokenizer=acme/words");
  EXPECT_EQ(checked.code, 0) << checked.output;
  EXPECT_CONTAINS(checked.output, "or hf://OWNER/NAME for one of the hub");
  for (const char* command :
       {"tycho run x.lua tokenizer=acme/words",
        "tycho run x.lua train_data.path=acme/texts tokenizer=tokenizer.json",
        "tycho tokenizer encode acme/words one", "tycho generate acme/tiny --prompt one",
        "tycho eval acme/tiny", "tycho convert acme/tiny out"}) {
    const Outcome outcome = here(command);
    EXPECT_NE(outcome.code, 0) << command << outcome.output;
  }
  EXPECT_EQ(server_.num_requests(), 0);
}

TEST_F(HubRecipes, SayWhatDoesNotExist) {
  write(recipe("t.model.hf { path = \"hf://acme/absent\" }"), "p.lua");
  const Outcome outcome = here("tycho run p.lua");
  EXPECT_EQ(outcome.code, 12) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "hf://acme/absent");
}

}  // namespace
}  // namespace tycho
