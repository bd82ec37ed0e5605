// The door of libtycho_engine.so: one table of functions.
#include "bindings/run/engine.h"

#include <c10/core/InferenceMode.h>

#include "trainer/base/error.h"
#include "trainer/device.h"
#include "trainer/eval/generate.h"
#include "trainer/run.h"

namespace tycho {
namespace {

DeviceKind device_kind(const std::string& name) {
  for (const auto& [text, kind] : enum_names(DeviceKind{}))
    if (name == text) return kind;
  fail(ExitCode::kUsage, "[generate] device is one of auto, cpu, cuda; given {}", name);
}

void generate(const GenerateRequest& request, const std::function<void(const std::string&)>& emit,
              const StopFlag& stop) {
  const c10::InferenceMode no_autograd;
  set_threads(request.threads);
  const CheckpointReader checkpoint(find_checkpoint(request.path));
  Generator generator(checkpoint, request.tokenizer, choose_device(device_kind(request.device)));
  generator.generate(request.prompt, {request.temperature, request.top_k, request.top_p}, request.max_tokens,
                     request.seed, emit, stop);
}

std::string versions() { return engine_versions().dump(); }

const EngineApi kApi = {.run = &run_training, .generate = &generate, .versions = &versions};

}  // namespace
}  // namespace tycho

extern "C" __attribute__((visibility("default"))) const tycho::EngineApi* tycho_engine_api() {
  return &tycho::kApi;
}
