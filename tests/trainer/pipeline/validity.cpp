// Simulates the programs of all stages: a pass needs its input, a message both of its halves at once.
#include "tests/trainer/pipeline/validity.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <tuple>

namespace tycho {
namespace {

using Kind = PipelineOp::Kind;

bool is_receive(Kind kind) { return kind == Kind::kReceiveActivation || kind == Kind::kReceiveGradient; }
bool is_send(Kind kind) { return kind == Kind::kSendActivation || kind == Kind::kSendGradient; }
bool is_forwards(Kind kind) { return kind <= Kind::kSendActivation; }

std::string describe(const PipelineShape& shape, const PipelineOp& op) {
  if (!is_receive(op.kind) && !is_send(op.kind))
    return describe(shape, PipelineAction{is_forwards(op.kind) ? PipelineAction::Kind::kForward
                                                               : PipelineAction::Kind::kBackward,
                                          op.chunk, op.micro_batch});
  std::string text = fmt::format("{} the {} of micro-batch {}", is_send(op.kind) ? "sending" : "receiving",
                                 is_forwards(op.kind) ? "activation" : "gradient", op.micro_batch);
  if (shape.num_chunks > 1) text += fmt::format(", chunk {},", op.chunk);
  return text + fmt::format(" {} stage {}", is_send(op.kind) ? "to" : "from", op.peer);
}

/// Runs the programs of all stages, each with its own position.
class Player {
 public:
  /// Without messages, results are available where they are needed as soon as they are computed.
  Player(const PipelineShape& shape, const std::vector<StageProgram>& programs, bool has_messages)
      : shape_(shape), programs_(programs), has_messages_(has_messages), next_(programs.size()) {}

  /// Runs until nothing can advance. Returns the first problem, or "".
  std::string play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < shape_.num_stages; ++stage)
        while (const PipelineOp* op = next_op(stage)) {
          if (std::string problem = problem_of(stage, *op); !problem.empty()) return problem;
          if (!advance(stage, *op)) break;
          moved = true;
        }
    }
    for (int stage = 0; stage < shape_.num_stages; ++stage)
      if (const PipelineOp* op = next_op(stage))
        return fmt::format("stage {} waits forever before {}", stage, describe(shape_, *op));
    return missing();
  }

 private:
  struct Done {
    int stage, chunk, micro_batch;
    Kind kind;
    auto tied() const { return std::tie(stage, chunk, micro_batch, kind); }
    bool operator<(const Done& other) const { return tied() < other.tied(); }
  };

  const PipelineOp* next_op(int stage) const {
    const auto s = static_cast<size_t>(stage);
    return next_[s] < programs_[s].size() ? &programs_[s][next_[s]] : nullptr;
  }
  bool has_done(int stage, int chunk, int micro_batch, Kind kind) const {
    return done_.contains({stage, chunk, micro_batch, kind});
  }

  /// Return the part of the model that makes the input of an op, or needs its result; nullopt at the ends.
  std::optional<int> source(int stage, const PipelineOp& op) const {
    return inside(shape_.part_of(stage, op.chunk) + (is_forwards(op.kind) ? -1 : 1));
  }
  std::optional<int> target(int stage, const PipelineOp& op) const {
    return inside(shape_.part_of(stage, op.chunk) + (is_forwards(op.kind) ? 1 : -1));
  }
  std::optional<int> inside(int part) const {
    return part < 0 || part >= shape_.num_parts() ? std::nullopt : std::optional(part);
  }
  /// Returns true when data between a stage and a part is sent as a message.
  bool is_sent(int stage, std::optional<int> part) const {
    return has_messages_ && part && shape_.stage_of(*part) != stage;
  }

  bool is_between(int stage, std::optional<int> part, int peer) const {
    return is_sent(stage, part) && shape_.stage_of(*part) == peer;
  }

  /// Returns what is wrong with an op independent of the other stages.
  std::string problem_of(int stage, const PipelineOp& op) const {
    const auto wrong = [&](const std::string& what) {
      return fmt::format("stage {}, {}: {}", stage, describe(shape_, op), what);
    };
    if (op.chunk < 0 || op.chunk >= shape_.num_chunks) return wrong("there is no such chunk");
    if (op.micro_batch < 0 || op.micro_batch >= shape_.num_micro_batches)
      return wrong("there is no such micro-batch");
    if (has_done(stage, op.chunk, op.micro_batch, op.kind)) return wrong("it is done twice");
    if (is_receive(op.kind) && !is_between(stage, source(stage, op), op.peer))
      return wrong("it is not made there");
    if (is_send(op.kind)) {
      if (!is_between(stage, target(stage, op), op.peer)) return wrong("it is not needed there");
      const Kind pass = is_forwards(op.kind) ? Kind::kForward : Kind::kBackward;
      if (!has_done(stage, op.chunk, op.micro_batch, pass)) return wrong("it is not computed yet");
    }
    if (op.kind == Kind::kForward || op.kind == Kind::kBackward) {
      const bool forward = op.kind == Kind::kForward;
      if (!forward && !has_done(stage, op.chunk, op.micro_batch, Kind::kForward))
        return wrong("its forward pass is not done yet");
      const Kind input = forward ? Kind::kReceiveActivation : Kind::kReceiveGradient;
      if (is_sent(stage, source(stage, op)) && !has_done(stage, op.chunk, op.micro_batch, input))
        return wrong("its input is not received before");
      if (op.micro_batch > 0 && !has_done(stage, op.chunk, op.micro_batch - 1, op.kind))
        return wrong(fmt::format("micro-batch {} comes first", op.micro_batch - 1));
    }
    return "";
  }

  /// Returns false when the op has to wait for another stage.
  bool advance(int stage, const PipelineOp& op) {
    if (is_receive(op.kind)) return false;  // its sender moves both
    const PipelineOp done = op;
    if (is_send(op.kind)) {
      const Kind half = op.kind == Kind::kSendActivation ? Kind::kReceiveActivation : Kind::kReceiveGradient;
      const PipelineOp wanted = {half, shape_.chunk_of(*target(stage, op)), op.micro_batch, stage};
      const PipelineOp* other = next_op(op.peer);
      if (other == nullptr || !(*other == wanted) || !problem_of(op.peer, *other).empty()) return false;
      finish(done.peer, wanted);
    } else if (!is_input_here(stage, op)) {
      return false;
    }
    finish(stage, done);
    return true;
  }

  /// Returns true when the input is on this stage, without a message.
  bool is_input_here(int stage, const PipelineOp& op) const {
    const std::optional<int> part = source(stage, op);
    return !part || is_sent(stage, part) ||
           has_done(shape_.stage_of(*part), shape_.chunk_of(*part), op.micro_batch, op.kind);
  }

  void finish(int stage, const PipelineOp& op) {
    done_.insert({stage, op.chunk, op.micro_batch, op.kind});
    ++next_[static_cast<size_t>(stage)];
  }

  /// Returns a pass or a message that no program has. A send without its other half has ended the run before.
  std::string missing() const {
    for (int stage = 0; stage < shape_.num_stages; ++stage)
      for (int chunk = 0; chunk < shape_.num_chunks; ++chunk)
        for (int micro_batch = 0; micro_batch < shape_.num_micro_batches; ++micro_batch)
          for (const Kind kind : {Kind::kForward, Kind::kBackward})
            if (!has_done(stage, chunk, micro_batch, kind))
              return fmt::format("stage {} leaves out {}", stage,
                                 describe(shape_, PipelineOp{kind, chunk, micro_batch, -1}));
    return "";
  }

  const PipelineShape& shape_;
  const std::vector<StageProgram>& programs_;
  const bool has_messages_;
  std::vector<size_t> next_;
  std::set<Done> done_;
};

std::string size_problem(const PipelineShape& shape, size_t num_lists) {
  if (std::string problem = shape_problem(shape); !problem.empty()) return problem;
  if (num_lists == static_cast<size_t>(shape.num_stages)) return "";
  return fmt::format("{} stages have {} lists", shape.num_stages, num_lists);
}

}  // namespace

std::string table_problem(const PipelineShape& shape, const PipelineTable& table) {
  if (std::string problem = size_problem(shape, table.size()); !problem.empty()) return problem;
  std::vector<StageProgram> passes(table.size());
  for (size_t stage = 0; stage < table.size(); ++stage)
    for (const PipelineAction& action : table[stage])
      passes[stage].push_back(
          {action.kind == PipelineAction::Kind::kForward ? Kind::kForward : Kind::kBackward, action.chunk,
           action.micro_batch, -1});
  return Player(shape, passes, false).play();
}

std::string program_problem(const PipelineShape& shape, const std::vector<StageProgram>& programs) {
  if (std::string problem = size_problem(shape, programs.size()); !problem.empty()) return problem;
  return Player(shape, programs, true).play();
}

}  // namespace tycho
