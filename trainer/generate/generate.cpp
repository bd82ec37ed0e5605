// Opens a checkpoint for inference and runs the decoder token by token.
#include "trainer/generate/generate.h"

#include <ATen/ops/from_blob.h>
#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/config/config_io.h"
#include "trainer/generate/text_stream.h"
#include "trainer/restore/initial_weights.h"

namespace tycho {
namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const CheckpointReader& checkpoint, const std::string& path) {
  if (!path.empty()) return load_tokenizer(path);
  const std::string kept = kept_tokenizer(checkpoint);
  if (kept.empty())
    fail(ExitCode::kUnusable,
         "[generate] {} was trained without a tokenizer: name one with --tokenizer PATH/tokenizer.json",
         checkpoint.info().path);
  const bool has_config = checkpoint.has_file(kTokenizerConfigFile);
  return tokenizer_from_text(checkpoint.read_text_file(kept), checkpoint.info().path + "/" + kept,
                             has_config ? checkpoint.read_text_file(kTokenizerConfigFile) : "");
}

TrainConfig config_of(const CheckpointReader& checkpoint, bool without_adapters) {
  const std::string& path = checkpoint.info().path;
  TrainConfig config = read_trained_config(checkpoint.info().manifest.at("recipe"), TrainedUse::kModel, path);
  if (!without_adapters) return config;
  if (!config.model.lora.is_used())
    fail(ExitCode::kUsage,
         "[generate] --without-adapters wanted adapters to leave out, and {} holds a whole model", path);
  config.model.lora = {};
  return config;
}

Tensor token_tensor(const std::vector<int32_t>& ids, const at::Device& device) {
  return at::from_blob(const_cast<int32_t*>(ids.data()), {static_cast<int64_t>(ids.size())},
                       at::TensorOptions().dtype(at::kInt))
      .clone()
      .to(device);
}

/// Uniform in [0, 1), for one token of one sample.
double uniform_draw(uint64_t seed, int64_t sample, int64_t token) {
  const uint64_t key = stream_key(seed, fmt::format("generate {}", sample));
  const auto words = philox(key, static_cast<uint64_t>(token));
  return (static_cast<double>(words[0]) + static_cast<double>(words[1]) * 0x1p-32) * 0x1p-32;
}

void check_ids(const char* what, const std::vector<int32_t>& ids, const TrainConfig& config) {
  const int64_t vocab = model_layout(config.model).vocab_size;
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab)
      fail(ExitCode::kUsage, "[{}] wanted tokens from 0 to {}, given {}", what, vocab - 1, id);
}

std::vector<float> host_row(const Tensor& logits_BV) {
  const Tensor row = logits_BV.select(0, 0).contiguous().cpu();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

}  // namespace

Generator::Generator(const CheckpointReader& checkpoint, const std::string& tokenizer,
                     const at::Device& device, bool without_adapters)
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
    load_trained(checkpoint, config_.model, own_units_->owned());
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
         "[generate] wanted a prompt of 1 to {} tokens (the model's longest sequence is {}), given {}",
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

std::optional<Generated> Generator::generate(const std::vector<int32_t>& prompt,
                                             const GenerateOptions& options, int64_t sample,
                                             const std::function<void(const std::string&)>& emit,
                                             const std::atomic<int>& stop) {
  const auto num_prompt = static_cast<int64_t>(prompt.size());
  const int64_t limit = std::min(options.max_tokens, longest_sequence(config_) - num_prompt);
  Decoder decoder(config_.model, units_, 1, num_prompt + limit, compute_dtype(config_.precision), device_,
                  region_, stage_);
  Generated result;
  TextStream stream(options.stop, [&](const std::string& piece) {
    result.text += piece;
    emit(piece);
  });
  std::vector<bool> seen(static_cast<size_t>(model_layout(config_.model).vocab_size));
  std::vector<int32_t> next = prompt;
  for (; result.tokens < limit; ++result.tokens) {
    if (stop != 0) return std::nullopt;
    for (const int32_t id : next) seen[static_cast<size_t>(id)] = true;
    std::vector<float> logits = host_row(decoder.next_logits(token_tensor(next, device_)));
    const std::vector<float> models_own = options.logprobs ? logits : std::vector<float>();
    if (options.sampling.repetition_penalty != 1)
      penalise_repetition(logits, seen, options.sampling.repetition_penalty);
    const int32_t id =
        sample_token(logits, options.sampling, uniform_draw(options.seed, sample, result.tokens));
    next.assign(1, id);
    if (options.logprobs) {
      result.token_ids.push_back(id);
      result.logprobs.push_back(log_probability(models_own, id));
    }
    if (tokenizer_ == nullptr) continue;
    if (!writes(id) && !options.ignore_eos) {
      result.finish = Finish::kEos;
      break;
    }
    if (writes(id) && stream.add(tokenizer_->token_bytes(id))) {
      result.tokens += 1;
      result.finish = Finish::kStop;
      break;
    }
  }
  if (result.finish != Finish::kStop) stream.finish();
  return result;
}

Tensor logits_of(const TrainConfig& config, UnitStore& units, const at::Device& device,
                 const std::vector<int32_t>& tokens, const DecoderLook& look, const ParallelRegion& region,
                 const PipelineStage& stage) {
  const auto count = static_cast<int64_t>(tokens.size());
  const int64_t longest = longest_sequence(config);
  if (count == 0 || count > longest)
    fail(ExitCode::kUsage, "[logits] wanted 1 to {} tokens (the model's longest sequence), given {}", longest,
         count);
  check_ids("logits", tokens, config);
  Decoder decoder(config.model, units, 1, count, compute_dtype(config.precision), device, region, stage);
  return decoder.next_logits(token_tensor(tokens, device), look);
}

}  // namespace tycho
