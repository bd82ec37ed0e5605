// Published sizes: exact numbers of parameters, as the models' own pages and file indices give them.
#include "trainer/huggingface/presets.h"

#include <gtest/gtest.h>

#include <set>

#include "trainer/base/json_writer.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/layout/model_layout.h"

namespace tycho {
namespace {

struct Published {
  const char *kind, *preset;
  int64_t num_params;
};

const Published kPublished[] = {{"llama", "smollm2-135m", 134515008},
                                {"llama", "smollm2-360m", 361821120},
                                {"llama", "smollm2-1.7b", 1711376384},
                                {"qwen2", "0.5b", 494032768},
                                {"qwen2", "1.5b", 1543714304},
                                {"qwen2", "3b", 3085938688},
                                {"qwen2", "7b", 7615616512},
                                {"qwen2", "14b", 14770033664},
                                {"qwen2", "32b", 32763876352},
                                {"qwen2", "72b", 72706203648},
                                {"qwen3", "0.6b", 596049920},
                                {"qwen3", "1.7b", 1720574976},
                                {"qwen3", "4b", 4022468096},
                                {"qwen3", "8b", 8190735360},
                                {"qwen3", "14b", 14768307200},
                                {"qwen3", "32b", 32762123264},
                                {"mistral", "7b-v0.1", 7241732096},
                                {"mistral", "7b-v0.3", 7248023552},
                                {"mistral", "nemo-12b", 12247782400},
                                {"mistral", "small-24b-2501", 23572403200},
                                {"mistral", "small-24b-3.1", 23572403200},
                                {"ministral3", "3b", 3429006336},
                                {"ministral3", "8b", 8489553920},
                                {"ministral3", "14b", 13506073600},
                                {"gemma2", "2b", 2614341888},
                                {"gemma2", "9b", 9241705984},
                                {"gemma2", "27b", 27227128320},
                                {"gemma3", "270m", 268098176},
                                {"gemma3", "1b", 999885952},
                                {"gemma3", "4b", 3880263168},
                                {"gemma3", "12b", 11766034176},
                                {"gemma3", "27b", 27009346304},
                                {"olmo2", "1b", 1484916736},
                                {"olmo2", "7b", 7298617344},
                                {"olmo2", "13b", 13716198400},
                                {"olmo2", "32b", 32234279936},
                                {"olmo3", "7b", 7298011136},
                                {"olmo3", "32b", 32233522176},
                                {"smollm3", "3b", 3075098624},
                                {"phi3", "phi-3-mini-4k", 3821079552},
                                {"phi3", "phi-3-mini-128k", 3821079552},
                                {"phi3", "phi-4", 14659507200},
                                {"phi3", "phi-4-mini", 3836021760},
                                {"granite", "3.3-2b", 2533539840},
                                {"granite", "3.3-8b", 8170864640},
                                {"granite", "3.0-2b", 2533531648},
                                {"granite", "3.0-8b", 8170848256}};

TEST(Presets, HaveThePublishedNumbersOfParameters) {
  size_t count = 0;
  for (const Published& wanted : kPublished)
    EXPECT_EQ(model_layout(preset_model(wanted.kind, wanted.preset)).num_params(), wanted.num_params)
        << wanted.kind << " " << wanted.preset;
  std::set<std::string> kinds;
  for (const Published& one : kPublished) kinds.insert(one.kind);
  for (const std::string& kind : kinds) count += preset_names(kind).size();
  EXPECT_EQ(count, std::size(kPublished));
}

TEST(Presets, AreTheirOwnExports) {
  for (const Published& one : kPublished) {
    const ModelConfig model = preset_model(one.kind, one.preset);
    const HfConfigText text = write_hf_config(model, 64);
    EXPECT_TRUE(text.warnings.empty()) << one.kind << " " << one.preset << ": " << text.warnings.at(0);
    EXPECT_EQ(to_json(read_hf_config(text.json, "c").model), to_json(model)) << one.kind << " " << one.preset;
  }
}

TEST(Presets, KindsWithoutPublishedSizesHaveNone) { EXPECT_TRUE(preset_names("mpt").empty()); }

}  // namespace
}  // namespace tycho
