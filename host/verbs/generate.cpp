// tycho generate: generates text with a checkpoint.
#include <cstdio>

#include "host/engine.h"
#include "host/prompts.h"
#include "host/sampling_options.h"
#include "host/signals.h"
#include "host/standard_streams.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kGenerateSpec = {
    "generate RUN_OR_FOLDER",
    "Generates text with a trained model and prints it as it is generated: a run, a checkpoint, a Hugging "
    "Face "
    "folder or a model of the hub.",
    "  tycho generate runs/demo --prompt 'class ' --temperature 0.8 --top-p 0.95\n"
    "  tycho generate hf://Qwen/Qwen3-0.6B --prompt 'Once upon a time' -n 64\n"
    "  tycho generate runs/demo --prompts questions.jsonl --samples 4 --stop '}' --json > answers.jsonl",
    {{"p,prompt", "Text to continue.", "TEXT"},
     {"prompts", "File of prompts: one per line, or objects with \"prompt\" in a .jsonl.", "FILE"},
     {"samples", "Number of texts for each prompt, sampled independently.", "N", "1"},
     {"n,max-tokens", "Maximum number of tokens to generate.", "N", "128"},
     kTemperatureOption,
     kTopKOption,
     kTopPOption,
     kRepetitionPenaltyOption,
     kStopOption,
     {"ignore-eos", "Continue past the model's end of text."},
     kSeedOption,
     {"tokenizer", "A tokenizer.json; default: the checkpoint's own.", "FILE", ""},
     {"without-adapters", "Of a run with adapters (lora): generate with the model that they are for."},
     kEmaOption,
     {"raw",
      "Print every byte as it was generated, for a pipe or a file. Otherwise characters that steer a "
      "terminal are written as \\u001b."},
     {"threads", "CPU threads; 0 for one per core.", "N", "0"},
     {"device", "auto, cpu or cuda.", "NAME", "auto"},
     {"json", "Print one JSON line per text when it is complete."},
     {"logprobs", "With --json: also print the chosen tokens and their log probabilities."}}};

namespace {

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail(ExitCode::kStorage, "[tycho generate] cannot write the text: the reader of stdout has gone");
}

void warn(const std::string& text) { fmt::print(stderr, "warning: {}\n", text); }

/// Prints prompts and texts as they arrive, with a title line for each when there are several.
class TextSink : public GenerateSink {
 public:
  TextSink(bool several, int64_t max_tokens) : several_(several), max_tokens_(max_tokens) {}
  void warning(const std::string& text) override { warn(text); }
  void begin(const std::string& prompt, int64_t sample) override {
    num_prompts_ += sample == 0;
    if (several_) print(fmt::format("--- prompt {}, sample {}\n", num_prompts_, sample + 1));
    print(prompt);
  }
  void text(const std::string& piece) override { print(piece); }
  void end(const GeneratedText& result) override {
    print("\n");
    if (result.finish == "length" && result.tokens < max_tokens_)
      warn(fmt::format("the text ends after {} of {} tokens, the model's longest sequence", result.tokens,
                       max_tokens_));
  }

 private:
  bool several_;
  int64_t max_tokens_;
  int64_t num_prompts_ = 0;
};

class JsonSink : public GenerateSink {
 public:
  JsonSink(bool logprobs, bool ema) : logprobs_(logprobs), ema_(ema) {}
  void warning(const std::string& text) override { warn(text); }
  void begin(const std::string& prompt, int64_t sample) override { prompt_ = prompt, sample_ = sample + 1; }
  void text(const std::string&) override {}
  void end(const GeneratedText& result) override {
    Json line = {{"prompt", prompt_},
                 {"sample", sample_},
                 {"text", result.text},
                 {"tokens", result.tokens},
                 {"finish", result.finish}};
    if (ema_) line["weights"] = "ema";
    if (logprobs_) line["token_ids"] = result.token_ids, line["logprobs"] = result.logprobs;
    // A text may end inside a character.
    print(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

 private:
  bool logprobs_, ema_;
  std::string prompt_;
  int64_t sample_ = 0;
};

std::vector<std::string> prompts_of(const Arguments& arguments) {
  if (arguments.has("prompt") == arguments.has("prompts"))
    fail(ExitCode::kUsage, "[tycho generate] expected either --prompt TEXT or --prompts FILE");
  if (arguments.has("prompts")) return read_prompts(arguments.text("prompts"));
  return {arguments.text("prompt")};
}

GenerateRequest to_request(const Arguments& arguments) {
  GenerateRequest request;
  request.path = word(arguments, 0, kTrainedModel);
  no_more_words(arguments, 1);
  request.prompts = prompts_of(arguments);
  request.samples = arguments.integer("samples", 1);
  request.tokenizer = arguments.text("tokenizer");
  request.without_adapters = arguments.has("without-adapters");
  request.ema = arguments.has("ema");
  if (request.ema && request.without_adapters)
    fail(
        ExitCode::kUsage,
        "[tycho generate] --ema is the average of the adapters, and --without-adapters leaves them out: give "
        "one of them");
  read_sampling(arguments, request);
  request.ignore_eos = arguments.has("ignore-eos");
  request.logprobs = arguments.has("logprobs");
  if (request.logprobs && !arguments.has("json"))
    fail(ExitCode::kUsage, "[tycho generate] --logprobs needs --json");
  request.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  request.device = arguments.text("device");
  return request;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  const GenerateRequest request = to_request(arguments);
  if (arguments.has("raw")) print_exact_text(/*always=*/true);
  const StopFlag& stop = stop_on_signals();
  const EngineApi& engine = open_engine(request.threads);
  TextSink text(request.prompts.size() * static_cast<size_t>(request.samples) > 1, request.max_tokens);
  JsonSink json(request.logprobs, request.ema);
  GenerateSink& sink = arguments.has("json") ? static_cast<GenerateSink&>(json) : text;
  if (request.ema && !arguments.has("json")) fmt::print(stderr, "with the average of the weights\n");
  engine.generate(request, sink, stop);
  if (stop == 0) return 0;
  if (!arguments.has("json")) print("\n");
  return 128 + stop;
}

}  // namespace tycho
