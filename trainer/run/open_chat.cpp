// A conversation becomes text by the template, text becomes tokens as a whole, and the tokens that an earlier
// answer had too are not computed again.
#include "trainer/run/open_chat.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/text/utf8.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/eval/generate.h"
#include "trainer/eval/kept_text.h"
#include "trainer/models/decode_batch.h"
#include "trainer/recipe/config_io.h"
#include "trainer/saving/initial_weights.h"
#include "trainer/saving/trained_source.h"

namespace tycho {
namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const ChatRequest& request, const TrainedSource& source,
                                        std::map<std::string, std::string>& files) {
  if (!request.tokenizer.empty()) {
    // The template beside it is its own.
    for (auto& [name, text] : read_files_beside_tokenizer(request.tokenizer)) files[name] = text;
    return load_tokenizer(request.tokenizer);
  }
  if (std::unique_ptr<Tokenizer> kept = open_kept_tokenizer(source)) return kept;
  fail(ExitCode::kUnusable,
       "[chat] expected a tokenizer in {}, got none: name one with --tokenizer PATH/tokenizer.json",
       source.info().path);
}

std::string today() {
  const std::chrono::year_month_day day =
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

/// Returns the text with U+FFFD for bytes that are not UTF-8: templates take texts.
std::string as_utf8(const std::string& bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(bytes.data() + at, bytes.size() - at, code);
    text += code == 0xFFFD && length == 1 ? "\uFFFD" : bytes.substr(at, length);
    at += length;
  }
  return text;
}

class ChatModel : public ChatSession {
 public:
  ChatModel(const ChatRequest& request, const at::Device& device)
      : ChatModel(request, TrainedSource(request.path, device, request.ema), device) {}

  const ChatFacts& facts() const override { return facts_; }

  ChatAnswer answer(const std::vector<ChatMessage>& messages, const ChatOptions& options,
                    const std::function<void(const std::string&)>& emit,
                    const std::atomic<int>& stop) override {
    const c10::InferenceMode no_autograd;
    ChatAnswer answer;
    const std::vector<int32_t> ids = fitting(messages, options.max_tokens, answer.dropped_messages);
    answer.prompt_tokens = std::ssize(ids);
    const auto write = [&](const std::string& piece) {
      const std::string text = as_utf8(piece);
      answer.text += text;
      emit(text);
    };
    const std::optional<Generated> whole =
        generate(ids, generate_options(options), options.number, write, stop, answer.reused_tokens);
    answer.finish = whole ? enum_name(whole->finish) : "interrupted";
    answer.tokens = whole ? whole->tokens : 0;
    return answer;
  }

 private:
  ChatModel(const ChatRequest& request, const TrainedSource& source, const at::Device& device)
      : config_(
            read_trained_config(source.info().manifest.at("recipe"), TrainedUse::kModel, source.info().path)),
        files_(files_beside_weights(source.info().path)),
        device_(device),
        tokenizer_(tokenizer_of(request, source, files_)),
        units_(model_layout(config_.model).units, compute_dtype(config_.precision), device, UnitUse::kInfer),
        text_(config_, units_, device) {
    const Json data = source.info().manifest.at("recipe").value("train_data", Json());
    choose_template(request, data.is_object() ? data.value("template_date", "") : "");
    eos_ids_ = source.end_of_text_ids();
    facts_.place = source.info().path;
    facts_.longest = longest_sequence(config_);
    source.load(config_.model, units_.owned());
  }

  /// `date`: of the run's data; "" for none.
  void choose_template(const ChatRequest& request, const std::string& date) {
    ChatConfig config;
    config.template_date = date.empty() ? today() : date;
    std::string text = request.chat_template.empty() ? chat_template_in(files_) : "";
    facts_.is_plain = request.chat_template.empty() && text.empty();
    config.chat_template = !text.empty()     ? "tokenizer"
                           : facts_.is_plain ? kPlainTemplate
                                             : request.chat_template;
    if (text.empty()) text = chat_template_text(config, request.tokenizer);
    begins_texts_ = config.chat_template == kPlainTemplate;
    facts_.chat_template =
        config.chat_template == "tokenizer" ? "the model's own template" : config.chat_template;
    template_.emplace(config, text, *tokenizer_);
    end_of_answer_ = template_->end_of_answer();
  }

  GenerateOptions generate_options(const ChatOptions& chat) const {
    GenerateOptions options;
    options.sampling = {chat.temperature, chat.top_k, chat.top_p, chat.repetition_penalty};
    options.max_tokens = chat.max_tokens;
    options.stop = chat.stop;
    if (!end_of_answer_.empty()) options.stop.push_back(end_of_answer_);
    options.eos_ids = eos_ids_;
    options.seed = chat.seed;
    return options;
  }

  std::vector<int32_t> tokens_of(const std::vector<ChatMessage>& messages) const {
    std::vector<int32_t> ids = tokenizer_->encode(template_->prompt(messages));
    // Other templates write what begins a text themselves.
    if (begins_texts_) {
      const std::vector<int32_t> begin = tokenizer_->text_begin();
      ids.insert(ids.begin(), begin.begin(), begin.end());
    }
    return ids;
  }

  /// Returns the tokens of the conversation without the oldest turns that leave no room for an answer.
  std::vector<int32_t> fitting(std::vector<ChatMessage> messages, int64_t max_tokens,
                               size_t& num_dropped) const {
    const int64_t longest = facts_.longest, room = std::min(max_tokens, std::max<int64_t>(longest / 4, 1));
    const size_t first = !messages.empty() && messages.front().role == "system" ? 1 : 0;
    for (;;) {
      std::vector<int32_t> ids = tokens_of(messages);
      const bool is_last = messages.size() <= first + 1;
      if (std::ssize(ids) + (is_last ? 1 : room) <= longest && !ids.empty()) return ids;
      if (is_last)
        fail(
            ExitCode::kUsage,
            "[chat] expected a message of at most {} tokens with what the template adds (the model's longest "
            "sequence is {}), got {}: shorten it, or the system message",
            longest - 1, longest, ids.size());
      do {
        messages.erase(messages.begin() + static_cast<int64_t>(first));
        num_dropped += 1;
      } while (messages.size() > first + 1 && messages[first].role != "user");
    }
  }

  std::optional<Generated> generate(const std::vector<int32_t>& ids, GenerateOptions options, int64_t number,
                                    const std::function<void(const std::string&)>& emit,
                                    const std::atomic<int>& stop, int64_t& num_reused) {
    if (rotates_by_workspace(decoder_spec(config_.model))) {
      Generator generator(config_, units_, tokenizer_.get(), device_);
      return generator.generate({ids, number}, options, emit, stop);
    }
    const int64_t limit = std::min(options.max_tokens, facts_.longest - std::ssize(ids));
    GenerationState state(options, tokenizer_.get(), ids, number, limit,
                          model_layout(config_.model).vocab_size, emit);
    std::optional<Tensor> logits_V = text_.become(ids, limit, stop);
    num_reused = text_.num_reused();
    while (logits_V) {
      const Tensor row = logits_V->contiguous().cpu();
      const std::optional<int32_t> token =
          state.next({row.data_ptr<float>(), row.data_ptr<float>() + row.numel()});
      if (!token) return state.result();
      if (stop != 0) break;
      logits_V = text_.add(*token);
    }
    return std::nullopt;
  }

  TrainConfig config_;
  std::map<std::string, std::string> files_;  // small files, by the names of Hugging Face
  at::Device device_;
  std::unique_ptr<Tokenizer> tokenizer_;
  LocalUnits units_;
  KeptText text_;
  ChatFacts facts_;
  std::optional<ChatTemplate> template_;
  std::string end_of_answer_;
  std::vector<int32_t> eos_ids_;
  bool begins_texts_ = false;
};

}  // namespace

std::unique_ptr<ChatSession> open_chat(const ChatRequest& request, const at::Device& device) {
  const c10::InferenceMode no_autograd;
  return std::make_unique<ChatModel>(request, device);
}

}  // namespace tycho
