// Adds up the same lists that the engine allocates by.
#include "trainer/plan/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/chat_rows.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/tokenizer/local_tokenizer.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/fp8_layers.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_rules.h"
#include "trainer/layout/stages.h"
#include "trainer/metrics/device_peak.h"
#include "trainer/metrics/format.h"
#include "trainer/plan/count_step_tokens.h"
#include "trainer/plan/cp_choice.h"
#include "trainer/plan/estimate.h"
#include "trainer/plan/plan_length.h"
#include "trainer/plan/rank_share.h"
#include "trainer/recipe/data_stages.h"
#include "trainer/recipe/hub_name.h"
#include "trainer/recipe/run_clock.h"

namespace tycho {
namespace {

constexpr int64_t kFp32Bytes = 4;

/// Returns the number of parameters in a checkpoint, which excludes the base of adapters.
int64_t saved_params(const ModelLayout& layout) {
  int64_t n = 0;
  for (const UnitSpec& unit : layout.units) n += unit.base ? 0 : unit.numel();
  return n;
}

/// Returns true when samples can be read without fetching them.
bool lies_here(const DataConfig& data) {
  const auto* mds = std::get_if<MdsConfig>(&data.value);
  return mds != nullptr && !mds->is_remote();
}

/// Opens data of this machine, which reads its first sample, and returns what does not fit; "" if all does.
std::string unfit_text(const DataConfig& data, const std::string& key, const TrainConfig& config) {
  if (!lies_here(data)) return "";
  RowShape shape = row_shape(config);
  shape.key = key;
  try {
    open_rows(data, shape, {}, key.starts_with("eval_data.") ? OrderShape() : order_shape(config));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

int64_t kept_checkpoints(const TrainConfig& config, const Plan& plan) {
  const double every = in_steps(config.ckpt.every, config, plan.steps, plan.num_samples);
  const double saves =
      every > 0 ? std::max(1.0, std::ceil(static_cast<double>(plan.steps) / std::max(1.0, every))) : 1;
  const auto all = static_cast<int64_t>(saves);
  return config.ckpt.keep == 0 ? all : std::min(config.ckpt.keep, all);
}

/// Returns 8030261248 as "8,030,261,248".
std::string grouped(int64_t n) {
  std::string text = std::to_string(n);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

void add_time(Precision precision, const PlanDevices& devices, Plan& plan) {
  const char* numbers = precision == Precision::kBf16 ? "bf16" : "fp32";
  const std::optional<double> peak = device_peak_flops(devices.gpu, precision);
  if (!peak)
    fail(ExitCode::kUsage,
         "[plan] expected a GPU with a known peak in {}, such as A100, \"H100 HBM3\" or H200; got \"{}\"",
         numbers, devices.gpu);
  plan.seconds = plan.total_flops / (*peak * devices.mfu * static_cast<double>(devices.num_ranks));
  plan.seconds_note =
      fmt::format("at {} of the peak of {} {} ({:.0f} TFLOP/s in {} each)", percent_text(devices.mfu),
                  devices.num_ranks, devices.gpu, *peak / 1e12, numbers);
}

std::string count_text(int64_t n) { return n < 100000 ? grouped(n) : human_count(static_cast<double>(n)); }

std::string model_line(const ModelConfig& config) {
  const DecoderSpec spec = decoder_spec(config);
  const std::string kv = spec.attention.kv_heads == spec.attention.heads
                             ? ""
                             : fmt::format(" ({} for keys and values)", spec.attention.kv_heads);
  return fmt::format("{}, {} blocks of width {}, {} heads{}", config.kind(), spec.layers, spec.width,
                     spec.attention.heads, kv);
}

std::string length_line(const Plan& plan) {
  if (plan.steps == 0) return "unknown: epochs of a data set that does not exist";
  std::string text = fmt::format("{} steps, {} tokens", count_text(plan.steps), count_text(plan.tokens));
  if (plan.data_epochs > 0) text += fmt::format(", {:.3g} epochs", plan.data_epochs);
  return text;
}

std::string data_line(const Plan& plan, const DataConfig& data) {
  const std::string samples =
      plan.num_samples > 0 ? grouped(plan.num_samples) + " samples" : "does not exist yet, see below";
  return samples + std::visit([](const auto& kind) { return kind.rows_text(); }, data.value);
}

std::string size_line(const std::string& name, int64_t num_bytes, const std::string& note) {
  const std::string size = human_bytes(static_cast<double>(num_bytes));
  return note.empty() ? fmt::format("  {:<20}{:>9}\n", name, size)
                      : fmt::format("  {:<20}{:>9}  {}\n", name, size, note);
}

void add_memory_lines(const Plan& plan, CpAttention cp_attention, std::string& text) {
  text += memory_table(plan);
  if (!plan.fit_note.empty()) text += "  " + plan.fit_note + "\n";
  if (!plan.traffic.empty()) text += "received from other ranks per step\n";
  for (const ByteItem& item : plan.traffic) text += size_line(item.name, item.num_bytes, item.note);
  if (!plan.cp_forms.empty())
    text += "cp_attention, received per step\n" + forms_text(plan.cp_forms, cp_attention);
  if (!plan.drawing.empty()) text += "ranks\n" + plan.drawing;
  text += "disk\n";
  text += size_line("one checkpoint", plan.checkpoint_bytes, plan.checkpoint_note);
  text += size_line("all kept", plan.disk_bytes, "including one being written");
}

/// A setting that reduces memory, as overrides; listed by cost in speed and exactness, cheapest first.
struct Saving {
  std::string pins;
  TrainConfig config;
};
std::vector<Saving> savings(const TrainConfig& config, int64_t num_ranks) {
  std::vector<Saving> all;
  const auto add = [&](const std::string& pins, const auto& change) {
    TrainConfig changed = all.empty() ? config : all.back().config;
    change(changed);
    all.push_back({(all.empty() ? "" : all.back().pins + " ") + pins, changed});
  };
  const bool can_share = num_ranks > config.parallel.pp * config.parallel.tp * config.parallel.cp &&
                         config.parallel.dp_shard == 1 &&
                         config.parallel.dp_replicate == ParallelConfig::kWhatIsLeft;
  if (can_share) add("parallel.dp_shard=-1", [](TrainConfig& c) { c.parallel.dp_shard = -1; });
  for (const auto& [name, mode] : enum_names(Recompute()))
    if (mode > config.recompute.mode && mode != Recompute::kAuto)
      add(fmt::format("recompute.mode={}", name), [mode = mode](TrainConfig& c) { c.recompute.mode = mode; });
  if (has_master(config) && !can_share)
    add("master_weights=stochastic", [](TrainConfig& c) { c.master_weights = MasterWeights::kStochastic; });
  add("micro_batch=1sp", [](TrainConfig& c) { c.micro_batch = Duration::parse("1sp"); });
  const std::string key = "recompute.mode=";  // the last of several words for it counts
  for (Saving& saving : all)
    for (size_t at; (at = saving.pins.find(key)) != saving.pins.rfind(key);)
      saving.pins.erase(at, saving.pins.find(' ', at) + 1 - at);
  return all;
}

std::string fit_note(TrainConfig config, const PlanDevices& devices, const Plan& plan) {
  const std::optional<int64_t> room = gpu_memory_bytes(devices.gpu);
  if (!room) return "";
  const auto bytes = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  if (plan.training_bytes <= *room)
    return fmt::format("fits into the {} of one {}", bytes(*room), devices.gpu);
  const std::string text = fmt::format("more than the {} of one {}: ", bytes(*room), devices.gpu);
  for (const Saving& saving : savings(config, devices.num_ranks)) {
    const int64_t less = plan_memory(saving.config, devices).training_bytes;
    if (less <= *room) return text + fmt::format("{} takes {}", saving.pins, bytes(less));
  }
  return text + "no setting makes it fit";
}

/// Replaces device `auto` by a GPU when the plan is for one.
TrainConfig on_planned_device(TrainConfig config, const PlanDevices& devices) {
  const bool on_gpus = !devices.gpu.empty() || (!config.machine.name.empty() && config.machine.name != "cpu");
  if (on_gpus && config.device == DeviceKind::kAuto) config.device = DeviceKind::kCuda;
  return config;
}

/// Adds the part of a plan that depends on the mesh.
void add_ranks(const TrainConfig& config, const ModelLayout& layout, const PlanDevices& devices, Plan& plan) {
  const int64_t num_ranks = devices.num_ranks;
  plan.num_ranks = num_ranks;
  plan.micro_batches_per_step = micro_batches_per_step(config, data_ranks(config.parallel, num_ranks));
  add_memory(config, layout, devices, plan);
  add_traffic(config, layout, num_ranks, plan);
  add_estimate(config, devices, plan);
}

bool is_missing(const std::string& path) {
  std::error_code error;
  return !std::filesystem::exists(path, error);
}

/// Returns advice for a tokenizer that is no file. "gpt2" and "meta-llama/Llama-3.1-8B" are names of the hub
/// without the hf:// that ours begin with.
std::string how_to_get_tokenizer(const std::string& path) {
  if (path.find('.') == std::string::npos || !path.ends_with(".json"))
    return "Write the path of a tokenizer.json or a tokenizer.model, or hf://OWNER/NAME for one of the hub";
  return "Name the tokenizer.json of the data, or train one with `tycho tokenizer train`";
}

/// Returns the message about the missing part of a data set, or "". Remote data is fetched later.
std::string missing_data(const MdsConfig& data) {
  if (data.is_remote()) return "";
  if (data.streams.empty())
    return is_missing(data.dir() + "/index.json") ? data.dir() + "/index.json" : std::string();
  for (const StreamConfig& stream : data.streams) {
    const std::string folder =
        stream.split.empty() ? stream.local_dir : stream.local_dir + "/" + stream.split;
    if (is_missing(folder + "/index.json")) return folder + "/index.json";
  }
  return "";
}

std::string missing_data(const ChatConfig& data) {
  return data.remote.empty() && !is_hub_name(data.path) && is_missing(data.path) ? data.path : "";
}

template <class Config>
std::string missing_data(const Config& data) {
  return !is_hub_name(data.path) && is_missing(data.path) ? data.path : "";
}

void add_missing_data(const DataConfig& data, const std::string& path, std::vector<ConfigProblem>& missing) {
  const std::string file = std::visit([](const auto& one) { return missing_data(one); }, data.value);
  const std::string key = data.is<MdsConfig>() ? ".local_dir" : ".path";
  if (!file.empty()) missing.push_back({path + key, file + " does not exist yet, but a run needs it"});
}

}  // namespace

std::vector<ConfigProblem> check_files(const TrainConfig& config) {
  std::error_code error;
  if (!std::filesystem::is_directory(config.tokenizer, error)) return {};
  return {{"tokenizer", folder_as_tokenizer(config.tokenizer)}};
}

std::vector<ConfigProblem> missing_files(const TrainConfig& config) {
  std::vector<ConfigProblem> missing;
  if (!config.tokenizer.empty() && !is_hub_name(config.tokenizer) && is_missing(config.tokenizer))
    missing.push_back({"tokenizer", fmt::format("{} does not exist yet, but a run needs it. {}",
                                                config.tokenizer, how_to_get_tokenizer(config.tokenizer))});
  for (const auto& [key, data] : all_data(config)) add_missing_data(data, key, missing);
  if (config.resume != "auto" && config.resume != "none" && is_missing(config.resume))
    missing.push_back(
        {"resume", config.resume + " does not exist yet, but a run resumes from it: it wants a checkpoint, a "
                                   "run, or a run's checkpoints"});
  return missing;
}

std::vector<ConfigProblem> unfit_samples(const TrainConfig& config) {
  std::vector<ConfigProblem> unfit;
  for (const auto& [key, data] : all_data(config)) {
    std::vector<ConfigProblem> missing;
    add_missing_data(data, key, missing);
    if (!missing.empty()) continue;
    if (const std::string text = unfit_text(data, key, config); !text.empty())
      unfit.push_back({key, text.substr(text.starts_with("[data] ") ? 7 : 0)});
  }
  return unfit;
}

std::vector<ConfigProblem> large_orders(const TrainConfig& config) {
  std::vector<ConfigProblem> large;
  for (const auto& [key, data] : all_data(config)) {
    if (key.starts_with("eval_data.") || !shuffles_one_list(data) || !lies_here(data)) continue;
    try {
      const int64_t samples = count_samples(data, row_shape(config), {}, order_shape(config));
      if (std::string text = one_list_warning(data, samples); !text.empty())
        large.push_back({key + ".shuffle_algo", std::move(text)});
    } catch (const Error&) {
      // What is wrong with the data is said by the plan and by a run.
    }
  }
  return large;
}

std::vector<ConfigProblem> check_parameters(const TrainConfig& config) {
  std::vector<ConfigProblem> problems = adapter_problems(decoder_spec(config.model));
  if (problems.empty()) problems = fp8_problems(decoder_spec(config.model), config.parallel.tp);
  if (problems.empty()) problems = stage_problems(config);
  if (!problems.empty()) return problems;
  if (config.param_groups.empty()) return {};
  return param_group_problems(config.optimizer, config.param_groups, model_layout(config.model).units);
}

Plan plan_memory(const TrainConfig& config, const PlanDevices& devices) {
  Plan plan;
  plan.num_ranks = devices.num_ranks;
  add_memory(config, model_layout(config.model), devices, plan);
  return plan;
}

std::string memory_table(const Plan& plan) {
  std::string text = "memory per rank\n";
  for (const ByteItem& item : plan.memory) text += size_line(item.name, item.num_bytes, item.note);
  return text + size_line("total", plan.memory_bytes, "");
}

Plan plan_mesh(const TrainConfig& config, const PlanDevices& devices) {
  return plan_mesh(config, model_layout(config.model), devices);
}

Plan plan_mesh(const TrainConfig& given, const ModelLayout& layout, const PlanDevices& devices) {
  const TrainConfig config = on_planned_device(given, devices);
  Plan plan;
  add_ranks(config, layout, devices, plan);
  return plan;
}

Plan make_plan(const TrainConfig& given, const PlanDevices& given_devices) {
  PlanDevices devices = given_devices;
  if (devices.num_ranks == 0) devices.num_ranks = fewest_ranks(given.parallel);
  TrainConfig config = on_planned_device(given, devices);
  const ModelLayout layout = model_layout(config.model);
  Plan plan = plan_length(config);
  config.step_tokens = plan.step_tokens;
  plan.num_matmul_params = layout.num_matmul_params;
  if (plan.data_problem.empty()) plan.data_problem = unfit_text(config.train_data, "train_data", config);
  plan.flops_per_token_full = layout.flops_per_token_full(config.seq_len);
  plan.flops_per_token_causal = layout.flops_per_token_causal(config.seq_len);
  plan.total_flops = plan.flops_per_token_full * static_cast<double>(plan.tokens);
  if (!devices.gpu.empty()) add_time(config.precision, devices, plan);
  add_ranks(config, layout, devices, plan);
  plan.cp_forms = compare_cp_forms(config, layout, devices);
  if (!devices.gpu.empty()) plan.fit_note = fit_note(config, devices, plan);
  const OptimizerBytes state = optimizer_state(config, layout, {});
  const OptimizerBytes average = average_state(config, layout, {});
  plan.checkpoint_bytes = kFp32Bytes * (saved_params(layout) + state.numbers + average.numbers);
  std::vector<std::string> kept = state.names;
  kept.insert(kept.end(), average.names.begin(), average.names.end());
  kept.insert(kept.begin(), layout.num_adapter_params() > 0 ? "adapters" : "weights");
  plan.checkpoint_note = fmt::format("{} in fp32", fmt::join(kept, ", "));
  plan.disk_bytes = (kept_checkpoints(config, plan) + 1) * plan.checkpoint_bytes;
  return plan;
}

std::string plan_text(const Plan& plan, const TrainConfig& config) {
  const int64_t num_data_ranks = data_ranks(config.parallel, plan.num_ranks);
  std::string text;
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<12}{}\n", name, value);
  };
  line("model", model_line(config.model));
  line("parameters", fmt::format("{} = {}, {} of them in products", grouped(plan.num_params),
                                 human_count(static_cast<double>(plan.num_params)),
                                 human_count(static_cast<double>(plan.num_matmul_params))));
  line("step",
       fmt::format("{} tokens: {} sequences of {}, in {}{} micro-batches", count_text(plan.tokens_per_step),
                   count_text(global_batch_sequences(config)), config.seq_len,
                   num_data_ranks > 1 ? fmt::format("{} ranks' ", num_data_ranks) : "",
                   plan.micro_batches_per_step));
  if (!plan.mesh.empty()) line("mesh", plan.mesh);
  line("run", length_line(plan));
  line("data", data_line(plan, config.train_data));
  for (const std::string& rows : plan.rows) line("", rows);
  line("work", fmt::format("{} per token ({} with causal attention)", flops_text(plan.flops_per_token_full),
                           flops_text(plan.flops_per_token_causal)));
  if (plan.tokens > 0) line("", flops_text(plan.total_flops) + " in all");
  if (const std::string fp8 = fp8_text(decoder_spec(config.model)); !fp8.empty()) line("fp8", fp8);
  if (!plan.machine.empty()) line("machine", plan.machine);
  if (!plan.speed.empty()) line("speed", plan.speed);
  if (!plan.waits.empty()) line("waits", plan.waits);
  if (plan.seconds > 0) line("time", fmt::format("{} {}", clock_text(plan.seconds), plan.seconds_note));
  add_memory_lines(plan, config.parallel.cp_attention, text);
  if (!plan.data_problem.empty()) text += "\n" + plan.data_problem + "\n";
  return text;
}

}  // namespace tycho
