// Joins the machine's figures to the lists of a plan.
#include "trainer/plan/estimate.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/metrics/format.h"
#include "trainer/plan/memory_limits.h"
#include "trainer/plan/mesh_drawing.h"
#include "trainer/plan/planned_gpu.h"

namespace tycho {
namespace {

/// Smallest share of a step that the order of attention's sums is mentioned for.
constexpr double kWorthSaying = 0.005;

std::string bytes_text(int64_t n) { return human_bytes(static_cast<double>(n)); }

std::string rate_text(double bytes_per_s) { return fmt::format("{:.3g} GB/s", bytes_per_s / 1e9); }

std::string fit_text(const Plan& plan, const Machine& machine) {
  const int64_t bytes = device_bytes(plan, machine);
  const std::string whose = machine.gpu.empty() ? "rank of this machine" : machine.gpu;
  if (bytes <= machine.memory_bytes)
    return fmt::format("fits into the {} of one {}", bytes_text(machine.memory_bytes), whose);
  return fmt::format("more than the {} of one {}", bytes_text(machine.memory_bytes), whose);
}

}  // namespace

std::string time_text(double s) {
  return s < 0.1 ? fmt::format("{:.3g} ms", 1e3 * s) : fmt::format("{:.3g} s", s);
}

int64_t ranks_per_node(const TrainConfig& config, const PlanDevices& devices) {
  if (devices.ranks_per_node > 0) return devices.ranks_per_node;
  const int64_t ranks = std::max<int64_t>(1, devices.num_ranks);
  if (config.machine.name.empty() || (config.machine.name == "cpu" && !config.machine.gpus_per_node))
    return ranks;
  return std::min(ranks, machine_of(config.machine).gpus_per_node);
}

Machine planned_machine(const TrainConfig& config, const PlanDevices& devices) {
  const bool is_cpu = config.machine.name == "cpu";
  Machine machine =
      machine_of(config.machine, is_cpu ? host_size() : HostSize{}, ranks_per_node(config, devices));
  if (devices.ranks_per_node > machine.gpus_per_node)
    fail(ExitCode::kUsage,
         "[plan] a node of machine \"{}\" has {} GPUs, and {} ranks are to be on it; change "
         "machine.gpus_per_node "
         "or the ranks per node",
         machine.name, machine.gpus_per_node, devices.ranks_per_node);
  // Where fewer ranks than GPUs are on a node, fewer are joined.
  if (devices.ranks_per_node > 0)
    machine.nvlink_gpus = machine.nvlink_gpus / machine.gpus_per_node * devices.ranks_per_node;
  return machine;
}

int64_t device_bytes(const Plan& plan, const Machine& machine) {
  return machine.gpu.empty() ? plan.memory_bytes : plan.training_bytes;
}

void add_estimate(const TrainConfig& config, const PlanDevices& devices, Plan& plan) {
  if (plan.num_ranks > 1)
    plan.drawing = draw_mesh(mesh_shape(config.parallel, plan.num_ranks), ranks_per_node(config, devices));
  if (config.machine.name.empty()) return;
  const Machine machine = planned_machine(config, devices);
  const StepTime time = step_time(config,
                                  {mesh_shape(config.parallel, plan.num_ranks), plan.micro_batches_per_step,
                                   plan.traffic, planned_gpu(config, devices).num_sms},
                                  machine);
  plan.machine = machine_line(machine);
  plan.speed = speed_line(time, machine);
  plan.waits = waits_text(time, machine);
  plan.estimate = time;
  if (!devices.gpu.empty()) return;
  plan.seconds = time.step_s * static_cast<double>(plan.steps);
  plan.seconds_note = "at this speed, without evaluation and checkpoints";
  plan.fit_note = fit_text(plan, machine);
}

std::string machine_line(const Machine& machine) {
  if (machine.gpu.empty())
    return fmt::format("{}: {} rank{} with {} each", machine.name, machine.gpus_per_node,
                       machine.gpus_per_node == 1 ? "" : "s", bytes_text(machine.memory_bytes));
  return fmt::format("{}: {} a node, {} each; NVLink {}, network {}", machine.name, machine.gpus_per_node,
                     bytes_text(machine.memory_bytes), rate_text(machine.nvlink_rate),
                     rate_text(machine.network_rate));
}

std::string speed_line(const StepTime& time, const Machine& machine) {
  const std::string speed =
      fmt::format("{} a step, {} tokens/s", time_text(time.step_s), human_count(time.tokens_per_s));
  if (machine.gpu.empty()) return speed + " (a guess: only compare meshes by it)";
  std::string order;
  if (const double share = time.order_s / time.step_s; share > kWorthSaying)
    order = fmt::format("; {} of it for attention's gradients in a fixed order (attention.deterministic)",
                        percent_text(share));
  else if (share < -kWorthSaying)
    order = fmt::format("; attention {} saves {} of it",
                        time.flash_3 ? "by FlashAttention-3" : "in any order", percent_text(-share));
  if (time.fp8_s != 0)
    order += fmt::format("; fp8 {} {} of it", time.fp8_s < 0 ? "saves" : "costs",
                         percent_text(std::abs(time.fp8_s) / time.step_s));
  return fmt::format("{}, MFU {} (estimated{})", speed, percent_text(time.mfu), order);
}

std::string waits_text(const StepTime& time, const Machine& machine) {
  std::string text;
  const auto add = [&](const std::string& what, double s, const char* where) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", what, percent_text(s / time.step_s), where);
  };
  const char* inside = machine.gpu.empty() ? " inside a machine" : " over NVLink";
  for (const AxisTime& axis : time.axes)
    add(axis.axis, axis.wait_s, axis.crosses ? " over the network" : inside);
  if (time.bubble_s > 0) add("pipeline", time.bubble_s, " without work");
  return text;
}

}  // namespace tycho
