// Reads the tasks before it asks the model anything.
#include "trainer/run/icl_checkpoint.h"

#include "trainer/base/error.h"
#include "trainer/eval/icl_evaluator.h"
#include "trainer/run/trained_model.h"

namespace tycho {

std::optional<IclResults> measure_icl(const TrainedSource& checkpoint, const IclConfig& config,
                                      const at::Device& device, const std::atomic<int>& stop) {
  TrainedModel trained(checkpoint, device);
  if (trained.tokenizer() == nullptr)
    fail(ExitCode::kUsage,
         "[icl] {} was trained without a tokenizer, and tasks are text: evaluate a checkpoint of a recipe "
         "with "
         "tokenizer = \"PATH/tokenizer.json\"",
         checkpoint.info().path);
  const IclEvaluator evaluator(config, trained.tokenizer(), trained.vocab_size(),
                               longest_sequence(trained.config()));
  return evaluator.evaluate(trained.asked(), stop);
}

}  // namespace tycho
