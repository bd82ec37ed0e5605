// Each op is called once on known numbers, which are checked, and then often on zeros, which are timed.
#include "trainer/run/comm_bench.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/comm/mesh.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kElementBytes = 4;
constexpr const char* kAllRanks = "all";

/// An operation at one size: its tensors, and functions that run it.
struct Trial {
  int64_t num_bytes = 0, count = 0;
  double bus_factor = 1;
  Tensor in, out, whole;  // on the device
  std::function<void(Trial&)> out_of_place, in_place;
  std::function<void(Trial&)> fill;                         // sets known numbers
  std::function<Tensor(Trial&)> expected_out, expected_in;  // contents of out and whole afterwards
};

/// Returns small integers, so that sums are exact: element i of rank r is i mod 17 + r.
Tensor numbers(int64_t first, int64_t count, int rank, const at::Device& device) {
  return at::arange(first, first + count, at::TensorOptions(at::kFloat).device(device))
      .remainder(17)
      .add(rank);
}

Tensor sum_over_ranks(int64_t first, int64_t count, int num_ranks, const at::Device& device) {
  return numbers(first, count, 0, device).mul(num_ranks).add(num_ranks * (num_ranks - 1) / 2);
}

class Group {
 public:
  Group(Communicator& comm, const at::Device& device) : comm_(comm), device_(device) {}

  /// Returns the trial of an operation; nullopt when it cannot be measured at this size: fewer bytes than an
  /// element for each rank.
  std::optional<Trial> trial(const std::string& op, int64_t num_bytes) const {
    const int n = comm_.size();
    const bool in_parts = op == "all_gather" || op == "reduce_scatter";
    const int64_t unit = in_parts ? kElementBytes * n : kElementBytes;
    if (op != "barrier" && num_bytes < unit) return std::nullopt;
    Trial trial;
    trial.count = op == "barrier" ? 0 : num_bytes / unit;
    trial.num_bytes = trial.count * unit;
    const int64_t whole = trial.num_bytes / kElementBytes;
    const auto options = at::TensorOptions(at::kFloat).device(device_);
    trial.whole = at::zeros({whole}, options);
    trial.in = at::zeros({op == "all_gather" ? trial.count : whole}, options);
    trial.out = at::zeros({op == "reduce_scatter" ? trial.count : whole}, options);
    if (op == "all_reduce") set_all_reduce(trial);
    if (op == "all_gather") set_all_gather(trial);
    if (op == "reduce_scatter") set_reduce_scatter(trial);
    if (op == "broadcast") set_broadcast(trial);
    if (op == "send_recv") set_send_recv(trial);
    if (op == "barrier") trial.in_place = [&comm = comm_](Trial&) { comm.barrier(); };
    return trial;
  }

 private:
  int rank() const { return comm_.rank(); }
  double links_share() const { return static_cast<double>(comm_.size() - 1) / comm_.size(); }

  void set_all_reduce(Trial& trial) const {
    trial.bus_factor = 2 * links_share();
    trial.in_place = [&comm = comm_](Trial& t) { comm.all_reduce(t.whole); };
    trial.fill = [*this](Trial& t) { t.whole.copy_(numbers(0, t.whole.numel(), rank(), device_)); };
    trial.expected_in = [*this](Trial& t) {
      return sum_over_ranks(0, t.whole.numel(), comm_.size(), device_);
    };
  }
  void set_all_gather(Trial& trial) const {
    trial.bus_factor = links_share();
    trial.out_of_place = [&comm = comm_](Trial& t) { comm.all_gather(t.out, t.in); };
    trial.in_place = [&comm = comm_](Trial& t) {
      comm.all_gather(t.whole, t.whole.narrow(0, comm.rank() * t.count, t.count));
    };
    trial.fill = [*this](Trial& t) {
      t.in.copy_(numbers(0, t.count, rank(), device_));
      t.whole.narrow(0, rank() * t.count, t.count).copy_(t.in);
    };
    trial.expected_in = trial.expected_out = [*this](Trial& t) {
      Tensor all = at::zeros({t.whole.numel()}, t.whole.options());
      for (int r = 0; r < comm_.size(); ++r)
        all.narrow(0, r * t.count, t.count).copy_(numbers(0, t.count, r, device_));
      return all;
    };
  }
  void set_reduce_scatter(Trial& trial) const {
    trial.bus_factor = links_share();
    trial.out_of_place = [&comm = comm_](Trial& t) { comm.reduce_scatter(t.out, t.in); };
    trial.in_place = [&comm = comm_](Trial& t) {
      Tensor piece = t.whole.narrow(0, comm.rank() * t.count, t.count);
      comm.reduce_scatter(piece, t.whole);
    };
    trial.fill = [*this](Trial& t) {
      t.in.copy_(numbers(0, t.in.numel(), rank(), device_));
      t.whole.copy_(t.in);
    };
    trial.expected_out = [*this](Trial& t) {
      return sum_over_ranks(rank() * t.count, t.count, comm_.size(), device_);
    };
    trial.expected_in = trial.expected_out;
  }
  void set_broadcast(Trial& trial) const {
    trial.in_place = [&comm = comm_](Trial& t) { comm.broadcast(t.whole, 0); };
    trial.fill = [*this](Trial& t) { t.whole.copy_(numbers(0, t.whole.numel(), rank(), device_)); };
    trial.expected_in = [*this](Trial& t) { return numbers(0, t.whole.numel(), 0, device_); };
  }
  /// Sets up an exchange of ranks 0 and 1, 2 and 3, ..., of a message in each direction, one after the other:
  /// half of the time is one message.
  void set_send_recv(Trial& trial) const {
    const int other = rank() % 2 == 0 ? rank() + 1 : rank() - 1;
    const bool has_other = other < comm_.size();
    trial.out_of_place = [&comm = comm_, other, has_other](Trial& t) {
      if (!has_other) return;
      if (comm.rank() % 2 == 0) comm.send(t.in, other);
      comm.recv(t.out, other);
      if (comm.rank() % 2 == 1) comm.send(t.in, other);
    };
    trial.fill = [*this](Trial& t) { t.in.copy_(numbers(0, t.in.numel(), rank(), device_)); };
    trial.expected_out = [*this, other, has_other](Trial& t) {
      return has_other ? numbers(0, t.out.numel(), other, device_) : t.out;
    };
  }

  Communicator& comm_;
  at::Device device_;
};

/// Waits for the device before the host looks at a clock: on a GPU, operations only queue work.
void synchronize(const Tensor& x) {
  if (!x.is_cpu() && x.numel() > 0) x.narrow(0, 0, 1).cpu();
}

double slowest(Communicator& world, double seconds) {
  Tensor all = at::zeros({world.size()}, at::kDouble);
  all.narrow(0, world.rank(), 1).fill_(seconds);
  world.all_reduce(all);
  return all.max().item<double>();
}

int64_t sum(Communicator& world, int64_t value) {
  Tensor all = at::zeros({1}, at::kLong);
  all.fill_(value);
  world.all_reduce(all);
  return all.item<int64_t>();
}

/// Measures one form of an operation: `result` is its output, `expected` the correct one.
CommForm measure(const CommBenchRequest& request, Communicator& world, Trial& trial,
                 const std::function<void(Trial&)>& call, const Tensor& result,
                 const std::function<Tensor(Trial&)>& expected, double calls_in_one) {
  CommForm form;
  if (trial.fill) {
    trial.fill(trial);
    call(trial);
    form.num_wrong = sum(world, expected(trial).ne(result).sum().item<int64_t>());
    for (Tensor* tensor : {&trial.in, &trial.out, &trial.whole}) tensor->zero_();
  }
  for (int i = 0; i < request.warmup; ++i) call(trial);
  synchronize(trial.whole);
  world.barrier();
  const auto start = Clock::now();
  for (int i = 0; i < request.iterations; ++i) call(trial);
  synchronize(trial.whole);
  const double seconds = seconds_since(start);
  form.seconds = slowest(world, seconds / request.iterations / calls_in_one);
  return form;
}

Tensor result_in_place(const std::string& op, const Trial& trial, int rank) {
  return op == "reduce_scatter" ? trial.whole.narrow(0, rank * trial.count, trial.count) : trial.whole;
}

std::vector<std::string> wanted_verbs(const CommBenchRequest& request) {
  if (request.collectives.empty()) return comm_verbs();
  for (const std::string& op : request.collectives)
    if (std::find(comm_verbs().begin(), comm_verbs().end(), op) == comm_verbs().end())
      fail(ExitCode::kUsage, "[bench] verbs are {}; got {}", fmt::join(comm_verbs(), ", "), op);
  return request.collectives;
}

void check_sizes(const CommBenchRequest& request) {
  if (request.min_bytes < 1 || request.max_bytes < request.min_bytes)
    fail(ExitCode::kUsage, "[bench] expected sizes from 1 byte up, the largest last; got {} to {}",
         request.min_bytes, request.max_bytes);
  if (request.factor < 2 || request.iterations < 1 || request.warmup < 0)
    fail(ExitCode::kUsage,
         "[bench] expected a factor of at least 2 and at least one iteration; got {} and {}", request.factor,
         request.iterations);
}

/// Returns the axes to measure, by name; kAllRanks unless one axis has them all.
std::vector<std::pair<std::string, AxisSet>> measured_axes(const MeshShape& shape) {
  std::vector<std::pair<std::string, AxisSet>> found;
  for (size_t i = 0; i < kNumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (shape.size(axis) > 1) found.emplace_back(axis_name(axis), axis);
  }
  if (found.size() != 1) found.emplace_back(kAllRanks, AxisSet());
  return found;
}

}  // namespace

const std::vector<std::string>& comm_verbs() {
  static const std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter",
                                                       "broadcast",  "send_recv",  "barrier"};
  return collectives;
}

MeshShape parse_mesh(const std::string& text, int num_ranks) {
  MeshShape shape;
  if (text.empty()) {
    shape.sizes[static_cast<size_t>(Axis::kDpReplicate)] = num_ranks;
    return shape;
  }
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.find('=');
    size_t axis = 0;
    while (axis < kNumAxes && part.substr(0, equals) != axis_name(static_cast<Axis>(axis))) ++axis;
    const std::string size = equals == std::string::npos ? "" : part.substr(equals + 1);
    const bool is_number = !size.empty() && size.size() < 7 &&
                           size.find_first_not_of("0123456789") == std::string::npos && size != "0";
    if (axis == kNumAxes || !is_number)
      fail(
          ExitCode::kUsage,
          "[bench] a mesh is written as dp_replicate=2,dp_shard=4, of pp, dp_replicate, dp_shard, cp and tp; "
          "got {}",
          text);
    shape.sizes[axis] = std::stoi(size);
  }
  if (shape.num_ranks() != num_ranks)
    fail(ExitCode::kTopology, "[bench] the mesh {} has {} ranks, and {} were started", describe(shape),
         shape.num_ranks(), num_ranks);
  return shape;
}

int bench_comm(const CommBenchRequest& request, Communicator& world, const at::Device& device,
               const std::atomic<int>& stop, const ShowCommTiming& show) {
  check_sizes(request);
  const std::vector<std::string> collectives = wanted_verbs(request);
  const MeshShape shape = parse_mesh(request.mesh, world.size());
  const Mesh mesh(shape, world);
  for (const auto& [axis, axes] : measured_axes(request.mesh.empty() ? MeshShape() : shape)) {
    Communicator& comm = axis == kAllRanks ? world : mesh.group(axes);
    const Group group(comm, device);
    for (const std::string& op : collectives) {
      for (int64_t num_bytes = request.min_bytes; num_bytes <= request.max_bytes;
           num_bytes *= request.factor) {
        if (const int signal = first_signal(world, stop); signal != 0) return signal;
        std::optional<Trial> trial = group.trial(op, num_bytes);
        if (!trial) continue;
        CommTiming timing = {op, axis, comm.size(), trial->num_bytes, trial->count, trial->bus_factor};
        const double calls_in_one = op == "send_recv" ? 2 : 1;
        if (trial->out_of_place)
          timing.out_of_place = measure(request, world, *trial, trial->out_of_place, trial->out,
                                        trial->expected_out, calls_in_one);
        if (trial->in_place)
          timing.in_place =
              measure(request, world, *trial, trial->in_place, result_in_place(op, *trial, comm.rank()),
                      trial->expected_in, calls_in_one);
        if (world.rank() == 0) show(timing);
        if (op == "barrier") break;
      }
    }
  }
  return 0;
}

}  // namespace tycho
