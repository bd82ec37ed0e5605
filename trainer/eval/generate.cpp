// Opens a checkpoint for inference, and lets its texts grow.
#include "trainer/eval/generate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/models/decode_batch.h"
#include "trainer/recipe/config_io.h"
#include "trainer/saving/initial_weights.h"

namespace tycho {
namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const TrainedSource& checkpoint, const std::string& path) {
  if (!path.empty()) return load_tokenizer(path);
  std::unique_ptr<Tokenizer> kept = open_kept_tokenizer(checkpoint);
  if (kept == nullptr)
    fail(ExitCode::kUnusable,
         "[generate] {} was trained without a tokenizer: name one with --tokenizer PATH/tokenizer.json",
         checkpoint.info().path);
  return kept;
}

TrainConfig config_of(const TrainedSource& checkpoint, bool without_adapters) {
  const std::string& path = checkpoint.info().path;
  TrainConfig config = read_trained_config(checkpoint.info().manifest.at("recipe"), TrainedUse::kModel, path);
  if (!without_adapters) return config;
  if (!config.model.lora.is_used())
    fail(ExitCode::kUsage,
         "[generate] --without-adapters expected adapters to leave out, and {} holds a whole model", path);
  config.model.lora = {};
  return config;
}

void check_ids(const char* what, const std::vector<int32_t>& ids, const TrainConfig& config) {
  const int64_t vocab = model_layout(config.model).vocab_size;
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab)
      fail(ExitCode::kUsage, "[{}] expected tokens from 0 to {}, got {}", what, vocab - 1, id);
}

std::vector<float> on_host(const Tensor& logits_V) {
  const Tensor row = logits_V.contiguous().cpu();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

class OneText : public TextReceiver {
 public:
  explicit OneText(const std::function<void(const std::string&)>& emit) : emit_(emit) {}
  void begin(size_t) override {}
  void piece(const std::string& text) override { emit_(text); }
  void end(const Generated& text) override { text_ = text; }
  const std::optional<Generated>& text() const { return text_; }

 private:
  const std::function<void(const std::string&)>& emit_;
  std::optional<Generated> text_;
};

}  // namespace

Generator::Generator(const TrainedSource& checkpoint, const std::string& tokenizer, const at::Device& device,
                     bool without_adapters)
    : config_(config_of(checkpoint, without_adapters)),
      device_(device),
      own_units_(std::make_unique<LocalUnits>(model_layout(config_.model).units,
                                              compute_dtype(config_.precision), device, UnitUse::kInfer)),
      own_tokenizer_(tokenizer_of(checkpoint, tokenizer)),
      units_(*own_units_),
      tokenizer_(own_tokenizer_.get()) {
  if (without_adapters)
    load_initial_weights(initial_weights_path(config_.model), config_.model, own_units_->owned());
  else
    checkpoint.load(config_.model, own_units_->owned());
}

Generator::Generator(const TrainConfig& config, UnitStore& units, const Tokenizer* tokenizer,
                     const at::Device& device, const ParallelRegion& region, const PipelineStage& stage)
    : config_(config),
      device_(device),
      units_(units),
      region_(region),
      stage_(stage),
      tokenizer_(tokenizer) {}

void Generator::check_prompt(const std::vector<int32_t>& ids) const {
  const int64_t longest = longest_sequence(config_);
  if (ids.empty() || std::cmp_greater_equal(ids.size(), longest))
    fail(ExitCode::kUsage,
         "[generate] expected a prompt of 1 to {} tokens (the model's longest sequence is {}), got {}",
         longest - 1, longest, ids.size());
  check_ids("generate", ids, config_);
}

std::vector<int32_t> Generator::encode(const std::string& prompt) const {
  std::vector<int32_t> ids = tokenizer_->encode(prompt);
  // What the tokenizer puts before every text, a model has seen before every text; a prompt may have it
  // already.
  const std::vector<int32_t> begin = tokenizer_->text_begin();
  const bool has_it = ids.size() >= begin.size() && std::equal(begin.begin(), begin.end(), ids.begin());
  if (!has_it) ids.insert(ids.begin(), begin.begin(), begin.end());
  check_prompt(ids);
  return ids;
}

std::optional<Generated> Generator::generate(const PromptToContinue& prompt, const GenerateOptions& options,
                                             const std::function<void(const std::string&)>& emit,
                                             const std::atomic<int>& stop) {
  OneText text(emit);
  generate(std::vector{prompt}, options, text, stop);
  return text.text();
}

bool Generator::generate(const std::vector<PromptToContinue>& prompts, const GenerateOptions& options,
                         TextReceiver& receiver, const std::atomic<int>& stop) {
  const int64_t longest = longest_sequence(config_), vocab_size = model_layout(config_.model).vocab_size;
  OrderedOutputs in_order(prompts.size(), receiver);
  std::vector<TextToGrow> texts;
  for (const PromptToContinue& prompt : prompts)
    texts.push_back({prompt.tokens, std::min(options.max_tokens, longest - std::ssize(prompt.tokens))});
  const auto make_decoder = [&](int64_t batch, int64_t num_positions) {
    return std::make_unique<Decoder>(config_.model, units_, batch, num_positions,
                                     compute_dtype(config_.precision), device_, region_, stage_);
  };
  std::map<size_t, GenerationState> written;  // texts in progress
  const auto next = [&](size_t i, const Tensor& logits_V) {
    const auto at =
        written
            .try_emplace(i, options, tokenizer_, prompts[i].tokens, prompts[i].sample, texts[i].max_tokens,
                         vocab_size, [&in_order, i](const std::string& piece) { in_order.piece(i, piece); })
            .first;
    const std::optional<int32_t> token = at->second.next(on_host(logits_V));
    if (!token) {
      in_order.end(i, at->second.result());
      written.erase(at);
    }
    return token;
  };
  DecodeBatch growing(config_.model, make_decoder, texts, next);
  for (; !growing.done(); growing.pass())
    if (stop != 0) return false;
  return true;
}

Tensor logits_of(const TrainConfig& config, UnitStore& units, const at::Device& device,
                 const std::vector<int32_t>& tokens, const DecoderLook& look, const ParallelRegion& region,
                 const PipelineStage& stage) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t longest = longest_sequence(config);
  if (count == 0 || count > longest)
    fail(ExitCode::kUsage, "[logits] expected 1 to {} tokens (the model's longest sequence), got {}", longest,
         count);
  check_ids("logits", tokens, config);
  Decoder decoder(config.model, units, 1, count, compute_dtype(config.precision), device, region, stage);
  return decoder.next_logits(numbers_on(device, tokens), look);
}

}  // namespace tycho
