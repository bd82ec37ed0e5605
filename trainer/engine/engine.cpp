// The interface of libtycho_engine.so: one table of functions.
#include "trainer/session/engine.h"

#include <c10/core/InferenceMode.h>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/comm/world.h"
#include "trainer/device/device.h"
#include "trainer/device/gpus.h"
#include "trainer/eval/generate.h"
#include "trainer/rendezvous/launcher_reports.h"
#include "trainer/run/comm_bench.h"
#include "trainer/run/evaluate_checkpoint.h"
#include "trainer/run/open_chat.h"
#include "trainer/run/open_session.h"
#include "trainer/run/run.h"
#include "trainer/saving/trained_source.h"

namespace tycho {
namespace {

DeviceKind device_kind(const char* verb, const std::string& name) {
  for (const auto& [text, kind] : enum_names(DeviceKind{}))
    if (name == text) return kind;
  fail(ExitCode::kUsage, "[{}] device is one of auto, cpu, cuda; got {}", verb, name);
}

GenerateOptions options_of(const GenerateRequest& request) {
  GenerateOptions options;
  options.sampling = {request.temperature, request.top_k, request.top_p, request.repetition_penalty};
  options.max_tokens = request.max_tokens;
  options.stop = request.stop;
  options.ignore_eos = request.ignore_eos;
  options.seed = request.seed;
  options.logprobs = request.logprobs;
  return options;
}

bool has_other_tokenizer(const TrainedSource& checkpoint, const std::string& path) {
  const std::string kept = kept_tokenizer(checkpoint);
  return !path.empty() && !kept.empty() && checkpoint.read_text_file(kept) != read_file(path);
}

/// Passes texts to the host in the order of prompts and samples.
class TextsToSink : public TextReceiver {
 public:
  TextsToSink(const GenerateRequest& request, GenerateSink& sink) : request_(request), sink_(sink) {}
  void begin(size_t text) override {
    const auto samples = static_cast<size_t>(request_.samples);
    sink_.begin(request_.prompts[text / samples], static_cast<int64_t>(text % samples));
  }
  void piece(const std::string& text) override { sink_.text(text); }
  void end(const Generated& text) override {
    sink_.end({text.text, text.tokens, enum_name(text.finish), text.token_ids, text.logprobs});
  }

 private:
  const GenerateRequest& request_;
  GenerateSink& sink_;
};

void generate(const GenerateRequest& request, GenerateSink& sink, const StopFlag& stop) {
  const c10::InferenceMode no_autograd;
  set_threads(request.threads);
  const at::Device device = choose_device(device_kind("generate", request.device));
  const TrainedSource checkpoint(request.path, device, request.ema);
  Generator generator(checkpoint, request.tokenizer, device, request.without_adapters);
  std::vector<PromptToContinue> prompts;
  for (const std::string& prompt : request.prompts) {
    const std::vector<int32_t> tokens = generator.encode(prompt);
    for (int64_t sample = 0; sample < request.samples; ++sample) prompts.push_back({tokens, sample});
  }
  if (has_other_tokenizer(checkpoint, request.tokenizer))
    sink.warning(fmt::format(
        "{} is not the tokenizer that {} was trained with: its tokens may be meaningless to the model",
        request.tokenizer, checkpoint.info().path));
  GenerateOptions options = options_of(request);
  options.eos_ids = checkpoint.end_of_text_ids();
  TextsToSink texts(request, sink);
  generator.generate(prompts, options, texts, stop);
}

std::unique_ptr<ChatSession> start_chat(const ChatRequest& request) {
  set_threads(request.threads);
  return open_chat(request, choose_device(device_kind("chat", request.device)));
}

/// Returns the data to evaluate: a .jsonl is text, everything else a folder of shards; nullopt for the
/// recipe's sets.
std::optional<DataConfig> data_to_evaluate(const EvalRequest& request) {
  if (request.data_dir.empty()) return std::nullopt;
  if (request.data_dir.ends_with(".jsonl")) return DataConfig{{ChatConfig{.path = request.data_dir}}};
  return DataConfig{{MdsConfig{.local_dir = request.data_dir, .split = request.split}}};
}

std::optional<EvalAnswer> evaluate(const EvalRequest& request, const StopFlag& stop) {
  const c10::InferenceMode no_autograd;
  set_threads(request.threads);
  const at::Device device = choose_device(device_kind("eval", request.device));
  const TrainedSource checkpoint(request.path, device, request.ema);
  auto results = evaluate_checkpoint(checkpoint, data_to_evaluate(request), request.batches, device, stop);
  if (!results) return std::nullopt;
  return EvalAnswer{
      .checkpoint = checkpoint.info().path, .step = checkpoint.info().step, .results = std::move(*results)};
}

std::optional<IclAnswer> answer_tasks(const IclRequest& request, const StopFlag& stop) {
  const c10::InferenceMode no_autograd;
  set_threads(request.threads);
  const at::Device device = choose_device(device_kind("eval", request.device));
  const TrainedSource checkpoint(request.path, device, request.ema);
  auto results = measure_icl(checkpoint, request.tasks, device, stop);
  if (!results) return std::nullopt;
  return IclAnswer{checkpoint.info().path, checkpoint.info().step, std::move(*results)};
}

std::optional<std::vector<ContinuationScore>> answer_harness(const LoglikelihoodRequest& request,
                                                             const StopFlag& stop) {
  const c10::InferenceMode no_autograd;
  set_threads(request.threads);
  const at::Device device = choose_device(device_kind("eval", request.device));
  return loglikelihoods(TrainedSource(request.path, device, request.ema), request.requests, request.encoding,
                        device, stop);
}

int measure_comm(const CommBenchRequest& request, const RankInfo& place, const StopFlag& stop,
                 const ShowCommTiming& show) {
  const c10::InferenceMode no_autograd;
  set_threads(0, place);
  const at::Device device = choose_device(device_kind("bench", request.device), place.local_rank);
  MeetOptions options;
  options.stop = &stop;
  const std::unique_ptr<Communicator> world = with_device(open_world(place, options), device);
  return bench_comm(request, *world, device, stop, show);
}

std::string versions() {
  Json versions = engine_versions();
  versions.update(usable_gpus());
  return versions.dump();
}

const EngineApi kApi = {.run = &run_training,
                        .open = &open_session,
                        .generate = &generate,
                        .open_chat = &start_chat,
                        .evaluate = &evaluate,
                        .measure_icl = &answer_tasks,
                        .loglikelihoods = &answer_harness,
                        .meet = &open_group,
                        .bench_comm = &measure_comm,
                        .versions = &versions};

}  // namespace
}  // namespace tycho

extern "C" __attribute__((visibility("default"))) const tycho::EngineApi* tycho_engine_api() {
  static const tycho::LauncherReports reports;  // as long as this process is a rank
  return &tycho::kApi;
}
