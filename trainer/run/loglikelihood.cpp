// Encodes requests with the checkpoint's tokenizer and asks its model.
#include "trainer/run/loglikelihood.h"

#include "trainer/run/trained_model.h"

namespace tycho {

std::optional<std::vector<ContinuationScore>> loglikelihoods(const TrainedSource& checkpoint,
                                                             const std::vector<HarnessRequest>& requests,
                                                             HarnessEncoding encoding,
                                                             const at::Device& device,
                                                             const std::atomic<int>& stop) {
  TrainedModel trained(checkpoint, device);
  const int64_t longest = longest_sequence(trained.config());
  std::vector<Continuation> continuations;
  for (const HarnessRequest& request : requests)
    continuations.push_back(
        encode_request(request, trained.tokenizer().get(), trained.vocab_size(), longest, encoding));
  return score(trained.asked(), continuations, stop);
}

}  // namespace tycho
