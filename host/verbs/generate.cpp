// tycho generate: lets a checkpoint write.
#include <cstdio>

#include "host/engine.h"
#include "host/signals.h"
#include "host/verb.h"

namespace tycho {

const VerbSpec kGenerateSpec = {
    "generate RUN_OR_CHECKPOINT",
    "Writes text with a trained model, as it is generated.",
    "  tycho generate runs/demo --prompt 'class ' --temperature 0.8 --top-p 0.95",
    {{"p,prompt", "Text to go on from.", "TEXT", ""},
     {"n,max-tokens", "Most tokens to write.", "N", "128"},
     {"t,temperature", "0 takes the likeliest token each time.", "X", "1"},
     {"top-k", "Choose among the K likeliest; 0 for all.", "K", "0"},
     {"top-p", "Choose among the likeliest that sum to P.", "P", "1"},
     {"seed", "The same seed writes the same text.", "N", "0"},
     {"tokenizer", "A tokenizer.json; default: the checkpoint's own.", "FILE", ""},
     {"threads", "CPU threads; 0 for one per core.", "N", "0"},
     {"device", "auto, cpu or cuda.", "NAME", "auto"}}};

namespace {

GenerateRequest to_request(const Arguments& arguments) {
  GenerateRequest request;
  request.path = word(arguments, 0, "a run folder or a checkpoint");
  no_more_words(arguments, 1);
  request.prompt = arguments.text("prompt");
  request.tokenizer = arguments.text("tokenizer");
  request.max_tokens = arguments.integer("max-tokens", 1);
  request.temperature = arguments.number("temperature", 0, 1e6);
  request.top_k = arguments.integer("top-k", 0);
  request.top_p = arguments.number("top-p", 0, 1);
  request.seed = static_cast<uint64_t>(arguments.integer("seed", 0));
  request.threads = static_cast<int>(arguments.integer("threads", 0, 4096));
  request.device = arguments.text("device");
  return request;
}

}  // namespace

int run_generate(const Arguments& arguments) {
  const GenerateRequest request = to_request(arguments);
  const StopFlag& stop = stop_on_signals();
  const EngineApi& engine = open_engine(request.threads);
  const auto emit = [](const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      fail(ExitCode::kStorage, "[tycho generate] cannot write the text: the reader of stdout is gone");
    }
  };
  emit(request.prompt);
  engine.generate(request, emit, stop);
  emit("\n");
  return stop == 0 ? 0 : 128 + stop;
}

}  // namespace tycho
