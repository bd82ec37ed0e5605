// Text from a trained model.
#include "trainer/eval/generate.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/base/philox.h"
#include "trainer/config_io.h"
#include "trainer/restore/unit_tensors.h"

namespace tycho {
namespace {

constexpr char kTokenizerFile[] = "tokenizer.json";

std::unique_ptr<Tokenizer> tokenizer_of(const CheckpointReader& checkpoint, const std::string& path) {
  if (!path.empty()) return load_tokenizer(path);
  if (!checkpoint.has_file(kTokenizerFile))
    fail(ExitCode::kUnusable,
         "[generate] {} was trained without a tokenizer: name one with --tokenizer PATH/tokenizer.json",
         checkpoint.info().path);
  return tokenizer_from_text(checkpoint.read_text_file(kTokenizerFile),
                             checkpoint.info().path + "/" + kTokenizerFile);
}

int64_t longest_sequence(const TrainConfig& config) {
  return std::visit([&](const auto& family) { return family.max_seq_len.value_or(config.seq_len); },
                    config.model.value);
}

// Bytes at the end that begin a UTF-8 character whose rest has not come yet.
size_t unfinished_tail(const std::string& bytes) {
  for (size_t back = 1; back <= std::min<size_t>(4, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

Tensor token_tensor(const std::vector<int32_t>& ids, const at::Device& device) {
  return at::from_blob(const_cast<int32_t*>(ids.data()), {static_cast<int64_t>(ids.size())},
                       at::TensorOptions().dtype(at::kInt))
      .clone()
      .to(device);
}

std::vector<float> host_row(const Tensor& logits_BV) {
  const Tensor row = logits_BV.select(0, 0).contiguous().cpu();
  return {row.data_ptr<float>(), row.data_ptr<float>() + row.numel()};
}

}  // namespace

Generator::Generator(const CheckpointReader& checkpoint, const std::string& tokenizer,
                     const at::Device& device)
    : config_(read_config_or_fail(checkpoint.info().manifest.at("recipe"))),
      device_(device),
      units_(make_units(model_layout(config_.model).units, compute_dtype(config_.precision), device,
                        FlatUnit::Use::kInfer)),
      tokenizer_(tokenizer_of(checkpoint, tokenizer)) {
  check_fit(checkpoint, units_.owned(), nullptr);
  load_tensors(checkpoint, units_.owned(), nullptr);
}

void Generator::generate(const std::string& prompt, const SamplingConfig& sampling, int64_t max_tokens,
                         uint64_t seed, const std::function<void(const std::string&)>& emit,
                         const std::atomic<int>& stop) {
  std::vector<int32_t> ids = tokenizer_->encode(prompt);
  const int64_t longest = longest_sequence(config_);
  if (ids.empty() || static_cast<int64_t>(ids.size()) >= longest)
    fail(ExitCode::kUsage,
         "[generate] wanted a prompt of 1 to {} tokens (the model's longest sequence is {}), given {}",
         longest - 1, longest, ids.size());
  const int64_t limit = std::min(max_tokens, longest - static_cast<int64_t>(ids.size()));
  Decoder decoder(config_.model, units_, 1, longest, compute_dtype(config_.precision), device_);
  const uint64_t key = stream_key(seed, "generate");
  std::string pending;
  for (int64_t n = 0; n < limit && stop == 0; ++n) {
    const std::vector<float> logits = host_row(decoder.next_logits(token_tensor(ids, device_)));
    const auto words = philox(key, static_cast<uint64_t>(n));
    const double draw = (static_cast<double>(words[0]) + static_cast<double>(words[1]) * 0x1p-32) * 0x1p-32;
    const int32_t id = sample_token(logits, sampling, draw);
    if (id >= tokenizer_->size() || tokenizer_->is_special(id)) break;
    pending += tokenizer_->token_bytes(id);
    const size_t whole = pending.size() - unfinished_tail(pending);
    if (whole > 0) emit(pending.substr(0, whole));
    pending.erase(0, whole);
    ids.assign(1, id);
  }
  if (!pending.empty()) emit(pending);
}

}  // namespace tycho
