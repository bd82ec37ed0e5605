// Programs run for real: a thread for each stage, sends that return when the other stage has received.
#include "trainer/pipeline/program.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/trainer/pipeline/shapes.h"

namespace tycho {
namespace {

using Kind = PipelineOp::Kind;

/// One direction between two stages, without any buffer.
class Channel {
 public:
  void send(double value) {
    std::unique_lock lock(mutex_);
    value_ = value;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !value_; });
  }
  double receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return value_.has_value(); });
    const double value = *value_;
    value_.reset();
    changed_.notify_all();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<double> value_;
};

/// Part k maps x to (k + 2) x + k; its gradient with respect to x is k + 2.
class TinyPipeline {
 public:
  explicit TinyPipeline(const PipelineShape& shape)
      : shape_(shape), results_(static_cast<size_t>(shape.num_stages)) {}

  void run() {
    const std::vector<StageProgram> programs = pipeline_programs(shape_, pipeline_table(shape_));
    std::vector<std::thread> threads;
    for (int stage = 0; stage < shape_.num_stages; ++stage)
      threads.emplace_back([&, stage] { run_stage(stage, programs[static_cast<size_t>(stage)]); });
    for (std::thread& thread : threads) thread.join();
  }
  /// What stage 0 knows at the end: the gradient of a micro-batch's last value with respect to its first one.
  double gradient(int micro_batch) const { return results_[0].gradients.at({0, micro_batch}); }
  double value(int micro_batch) const {
    return results_.back().values.at({shape_.num_chunks - 1, micro_batch});
  }

 private:
  struct Results {
    std::map<std::pair<int, int>, double> inputs, values, output_gradients,
        gradients;  // of (chunk, micro-batch)
  };

  void run_stage(int stage, const StageProgram& program) {
    Results& own = results_[static_cast<size_t>(stage)];
    for (const PipelineOp& op : program) {
      const std::pair<int, int> pass = {op.chunk, op.micro_batch};
      const int part = shape_.part_of(stage, op.chunk);
      if (op.kind == Kind::kReceiveActivation) own.inputs[pass] = channel(op.peer, stage).receive();
      if (op.kind == Kind::kReceiveGradient) own.output_gradients[pass] = channel(op.peer, stage).receive();
      if (op.kind == Kind::kForward) own.values[pass] = (part + 2) * input(own, stage, op) + part;
      if (op.kind == Kind::kBackward) own.gradients[pass] = (part + 2) * output_gradient(own, stage, op);
      if (op.kind == Kind::kSendActivation) channel(stage, op.peer).send(own.values.at(pass));
      if (op.kind == Kind::kSendGradient) channel(stage, op.peer).send(own.gradients.at(pass));
    }
  }
  double input(const Results& own, int stage, const PipelineOp& op) const {
    if (shape_.part_of(stage, op.chunk) == 0) return op.micro_batch + 1;
    return shape_.num_stages == 1 ? own.values.at({op.chunk - 1, op.micro_batch})
                                  : own.inputs.at({op.chunk, op.micro_batch});
  }
  double output_gradient(const Results& own, int stage, const PipelineOp& op) const {
    if (shape_.part_of(stage, op.chunk) == shape_.num_parts() - 1) return 1;
    return shape_.num_stages == 1 ? own.gradients.at({op.chunk + 1, op.micro_batch})
                                  : own.output_gradients.at({op.chunk, op.micro_batch});
  }
  Channel& channel(int from, int to) {
    const std::lock_guard lock(mutex_);
    return channels_[{from, to}];
  }

  const PipelineShape shape_;
  std::vector<Results> results_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, Channel> channels_;
};

TEST(PipelineProgram, RunsToItsEndWithSendsThatWaitForTheirReceiver) {
  for (const PipelineShape& shape : many_shapes()) {
    if (shape.num_stages > 5 || shape.num_micro_batches > 9) continue;
    TinyPipeline pipeline(shape);
    pipeline.run();
    for (int micro_batch = 0; micro_batch < shape.num_micro_batches; ++micro_batch) {
      double value = micro_batch + 1, gradient = 1;
      for (int part = 0; part < shape.num_parts(); ++part) {
        value = (part + 2) * value + part;
        gradient *= part + 2;
      }
      EXPECT_EQ(pipeline.value(micro_batch), value) << text_of(shape);
      EXPECT_EQ(pipeline.gradient(micro_batch), gradient) << text_of(shape);
    }
  }
}

TEST(PipelineProgram, HasThePassesOfTheTable) {
  for (const PipelineShape& shape : many_shapes()) {
    const PipelineTable table = pipeline_table(shape);
    const std::vector<StageProgram> programs = pipeline_programs(shape, table);
    for (size_t stage = 0; stage < table.size(); ++stage) {
      StageActions passes;
      for (const PipelineOp& op : programs[stage])
        if (op.kind == Kind::kForward || op.kind == Kind::kBackward)
          passes.push_back(
              {op.kind == Kind::kForward ? PipelineAction::Kind::kForward : PipelineAction::Kind::kBackward,
               op.chunk, op.micro_batch});
      EXPECT_TRUE(passes == table[stage]) << text_of(shape) << " stage " << stage;
    }
  }
}

TEST(PipelineProgram, HoldsAsManyActivationsAsTheScheduleIsKnownFor) {
  for (const PipelineShape& shape : many_shapes()) {
    const std::vector<StageProgram> programs = pipeline_programs(shape, pipeline_table(shape));
    const int p = shape.num_stages, m = shape.num_micro_batches, v = shape.num_chunks;
    for (int stage = 0; stage < p; ++stage) {
      const int held = pipeline_holds(programs[static_cast<size_t>(stage)]).activations;
      int known = held;
      if (shape.schedule == PipelineSchedule::kGpipe) known = m;
      if (shape.schedule == PipelineSchedule::k1f1b) known = std::min(m, p - stage);
      if (shape.schedule == PipelineSchedule::kInterleaved && m % p == 0)  // Megatron's warm-up, and one
        known = std::min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1);
      EXPECT_EQ(held, known) << text_of(shape);
    }
  }
}

TEST(PipelineProgram, CountsWhatIsReceivedAndWaits) {
  const StageProgram program = {{Kind::kReceiveActivation, 0, 0, 0}, {Kind::kReceiveActivation, 0, 1, 0},
                                {Kind::kForward, 0, 0, -1},          {Kind::kReceiveGradient, 0, 0, 2},
                                {Kind::kBackward, 0, 0, -1},         {Kind::kForward, 0, 1, -1}};
  const PipelineHolds holds = pipeline_holds(program);
  EXPECT_EQ(holds.activations, 1);
  EXPECT_EQ(holds.received_activations, 2);
  EXPECT_EQ(holds.received_gradients, 1);
}

}  // namespace
}  // namespace tycho
