// What tests of whole runs share.
#include "tests/trainer/run/run_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/aten.h"
#include "trainer/base/json_writer.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/recipe/config_io.h"
#include "trainer/run/run.h"

namespace tycho {

RunTest::RunTest() {
  LlamaConfig model;
  model.width = 32, model.layers = 2, model.heads = 4, model.kv_heads = 2, model.ffn_width = 64,
  model.vocab_size = 64;
  model.tied = true;
  config_.model.value = model;
  config_.run_name = "test";
  config_.run_dir = dir_ / "run";
  config_.seq_len = 16;
  config_.global_batch = {4, DurationUnit::kSample};
  config_.micro_batch = Duration{2, DurationUnit::kSample};
  config_.max_duration = {12, DurationUnit::kBatch};
  config_.optimizer.value = AdamWConfig{.lr = 1e-2};
  config_.scheduler.value = CosineConfig{{.t_warmup = {2, DurationUnit::kBatch}}};
  config_.ckpt.every = {4, DurationUnit::kBatch};
  config_.ckpt.keep = 0;
  config_.threads = 2;
  config_.device = DeviceKind::kCpu;
  MdsConfig data;
  data.local_dir = dir_ / "data";
  config_.train_data.value = data;
}

void RunTest::write_data(int64_t num_samples, int64_t seq_len, int32_t vocab, const std::string& split) {
  at::manual_seed(1);
  const std::string dir = dir_ / ("data/" + split);
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  MdsWriter writer(real_files(), dir, {.columns = {{"tokens", "ndarray:int32"}}});
  for (int64_t i = 0; i < num_samples; ++i) {
    // A walk with small steps: something that a model can learn.
    const at::Tensor tokens =
        at::remainder(at::cumsum(at::randint(1, 4, {seq_len}, at::kLong), 0) + i, vocab).to(at::kInt);
    writer.write({encode_mds_array(tokens.data_ptr<int32_t>(), seq_len, 4)});
  }
  writer.finish();
}

RunRequest RunTest::request(const std::string& until) const {
  RunRequest request;
  request.until = until;
  const Json recipe = config_to_json(config_);
  request.config = config_;
  request.recipe_lua = "return nil\n";
  request.provenance_json = "{}";
  request.recipe_hash = config_hash(recipe);
  request.callbacks = callbacks_;
  return request;
}

int RunTest::run(const std::string& until) {
  fflush(stdout);
  const int saved = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDOUT_FILENO);
  close(null);
  struct Restore {
    int fd;
    ~Restore() {
      dup2(fd, STDOUT_FILENO);
      close(fd);
    }
  } restore{saved};
  return run_training(request(until), /*tty=*/false, stop_);
}

Error RunTest::run_error() {
  try {
    run();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "the run did not fail";
  return Error("");
}

std::vector<Json> RunTest::lines(const std::string& name) const {
  std::ifstream in(run_dir() + "/" + name);
  std::vector<Json> result;
  for (std::string line; std::getline(in, line);) result.push_back(Json::parse(line));
  return result;
}

std::map<int64_t, double> RunTest::losses() const {
  std::map<int64_t, double> result;
  for (const Json& line : lines("metrics.jsonl"))
    if (line.contains("loss")) result[line.at("step")] = line.at("loss");
  return result;
}

std::map<std::string, std::string> RunTest::tensors_of(const std::string& path) {
  const CheckpointReader reader(find_checkpoint(path));
  std::map<std::string, std::string> result;
  for (const std::string& name : reader.names()) {
    std::string bytes(static_cast<size_t>(reader.describe(name).num_bytes), '\0');
    reader.read(name, bytes.data(), static_cast<int64_t>(bytes.size()));
    result[name] = std::move(bytes);
  }
  return result;
}

}  // namespace tycho
