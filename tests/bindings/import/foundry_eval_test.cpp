// When LLM Foundry evaluates, and on what.
#include <gtest/gtest.h>

#include "tests/bindings/import/foundry_yaml.h"

namespace tycho {
namespace {

TEST(FoundryEval, AnIntervalOfZeroTurnsEvaluationsOff) {
  const std::string sets =
      "eval_loader: {name: text, dataset: {local: v}}\nicl_tasks: [{label: a, dataset_uri: a.jsonl, "
      "num_fewshot: [0], icl_task_type: language_modeling}]\neval_first: ";
  for (const char* zero : {"0", "0ba", "0ep", "-1"}) {
    const std::string off = of(sets + "false\neval_interval: " + zero + "\n");
    EXPECT_CONTAINS(off, "(eval_interval is 0: nothing is evaluated)");
    EXPECT_LACKS(off, "eval_data.val =");
    EXPECT_LACKS(off, "r.eval.");
    EXPECT_LACKS(off, "r.icl.");
  }
  const std::string first = of(sets + "true\neval_interval: 0\n");
  EXPECT_CONTAINS(first, "r.eval_data.val = t.data.mds {");
  EXPECT_CONTAINS(first, "r.eval.first = true");
  EXPECT_CONTAINS(first, "r.icl.first = true");
  EXPECT_LACKS(first, "every =");
  EXPECT_CONTAINS(first,
                  "eval_interval: with eval_first, evaluates once before training; here at the end, too");
  EXPECT_CONTAINS(of(sets + "false\neval_interval: 0.5dur\n"), "r.eval.every = \"0.5dur\"");
  EXPECT_CONTAINS(imported(with_text_loader(sets + "false\n"), {{3, "eval_interval=0"}}),
                  "-- eval_interval: 0  (nothing is evaluated)");
  EXPECT_CONTAINS(of("save_interval: 0\n"), "save_interval: saves nothing in LLM Foundry");
}

TEST(FoundryEval, EvaluatesEveryEpochWithoutAnInterval) {
  const std::string text = of("eval_loader: {name: text, dataset: {local: v}}\n");
  EXPECT_CONTAINS(text, "r.eval.every = \"1ep\"  -- LLM Foundry's default");
  EXPECT_CONTAINS(text, "eval_interval: is not set: the sets are evaluated after every epoch");
  EXPECT_LACKS(of("seed: 1\n"), "eval.every");
}

TEST(FoundryEval, EvaluatesWithTheDocumentsOfTraining) {
  const auto made = [](const std::string& eval) {
    return import_recipe("x.yaml",
                         "max_duration: 10ba\neval_interval: 5ba\nmodel: {name: mpt_causal_lm, attn_config: "
                         "{attn_uses_sequence_id: true}}\ntrain_loader: {name: text, dataset: {local: x, "
                         "eos_token_id: 0}}\neval_loader: {name: text, dataset: {local: v" +
                             eval + "}}\n");
  };
  const Imported without = made("");
  EXPECT_CONTAINS(without.lua.substr(without.lua.find("r.eval_data.val")), "eos_token_id = 0,");
  ASSERT_EQ(without.notes.size(), 2u);  // one says that long samples are cut
  EXPECT_CONTAINS(without.notes[0] + without.notes[1],
                  "eval_loader: attention stays within documents, as in training");
  EXPECT_EQ(made(", eos_token_id: 0").notes.size(), 1u);
}

}  // namespace
}  // namespace tycho
