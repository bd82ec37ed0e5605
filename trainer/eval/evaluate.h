// The loss of a model on held-out data.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/context/context_region.h"
#include "trainer/models/model.h"
#include "trainer/recipe/data.h"
#include "trainer/session/eval_result.h"

namespace tycho {

/// A tokenizer, and how many bytes of text each of its tokens stands for.
struct TokenTexts {
  std::string tokenizer;  // its path; "" for none
  Tensor bytes_V;         // fp64, on the device; 0 for tokens that are no text, undefined without a tokenizer
};

/// Reads the tokenizer at a path, "" for none, of a model with this vocabulary. Throws Error (kUnusable).
TokenTexts token_texts(const std::string& tokenizer, int64_t vocab_size, const at::Device& device);

/// Evaluates a split in the order of its files. Owned by the thread that owns the model; changes no state of
/// training.
class Evaluator {
 public:
  /// `shape` is the model's; `texts` are for data that is text, and for bits per byte. Uses the first
  /// `max_sequences` of the split, all for 0. Throws Error (kUnusable) when the data is missing or does not
  /// fit the model. `data_ranks` are the ranks that divide the sequences; ranks along tp, cp and pp read the
  /// same ones. `loss_ranks` are the ranks whose losses are summed, including those along cp and pp. They and
  /// `world`, all ranks, must outlive the evaluator. For `opened`, see open_rows. `key` is the recipe's key
  /// of the data, for messages.
  Evaluator(const DataConfig& data, int64_t max_sequences, BatchShape shape, Model& model,
            Communicator& data_ranks, Communicator& loss_ranks, Communicator& world, const at::Device& device,
            const OpenedData& opened, const TokenTexts& texts = {}, const std::string& key = "eval_data");

  /// Makes one pass, shared by all ranks, which get the same result. Fills up the last batches with ignored
  /// targets. Returns nullopt when `stop` is not 0 on some rank before the end. Throws Error (kUnusable) when
  /// no token has a target with a weight. Collective.
  std::optional<EvalResult> evaluate(const std::atomic<int>& stop);

 private:
  /// Returns sums, fp64, in the pass of all ranks that begins with sequence `begin`: each of the losses of
  /// this rank's tokens, the cross-entropy of those that are text and the bytes of that text, then the weight
  /// and the number of the targets of its sequences.
  Tensor sums(int64_t begin);
  /// Returns the sums, fp64, over tokens whose target is text: of this rank's cross-entropies, and of the
  /// bytes of that text in all of the batch.
  std::pair<Tensor, Tensor> text_sums(const ContextRegion& context, const Tensor& entropies_N,
                                      const Tensor& targets_N, const Tensor& weights_N) const;
  /// Returns up to `count` sequences from `begin` on.
  std::vector<uint32_t> samples_from(int64_t begin, int64_t count) const;

  std::string place_;
  BatchShape shape_;
  Model& model_;
  Communicator& data_ranks_;
  Communicator& loss_ranks_;
  Communicator& world_;
  at::Device device_;
  std::unique_ptr<RowReader> data_;
  int64_t num_sequences_;
  Tensor bytes_V_;  // of TokenTexts
};

}  // namespace tycho
