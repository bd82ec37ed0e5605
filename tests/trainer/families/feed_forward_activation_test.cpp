// An activation of the recipe where a config of Hugging Face needs a name.
#include "trainer/families/feed_forward_activation.h"

#include "tests/trainer/expression/activation_functions.h"
#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/huggingface/hf_config.h"

namespace tycho {
namespace {

TEST(FeedForwardActivation, OfTheRecipeHasNoNameAtHuggingFace) {
  Gpt2Config gpt2;
  gpt2.activation.expression = silu_function(), gpt2.activation.code.at = "recipes/x.lua:7";
  MptConfig mpt;
  mpt.activation = gpt2.activation;
  for (const ModelConfig& model : {ModelConfig{gpt2}, ModelConfig{mpt}}) {
    const std::string said = message_of(ExitCode::kRecipe, [&] { write_hf_config(model, 1024); });
    expect_contains(said, "[model.activation] expected an activation that Hugging Face has a name for");
    expect_contains(said, "recipes/x.lua:7");
  }
}

}  // namespace
}  // namespace tycho
