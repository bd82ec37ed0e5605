// Opens loaders: one at a time, but where another mix or position may yet be refused.
#include "trainer/train/training_data.h"

#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/layout/model_layout.h"
#include "trainer/profiler/range.h"
#include "trainer/recipe/data_stages.h"
#include "trainer/rendezvous/progress.h"

namespace tycho {

TrainingData::TrainingData(const TrainConfig& recipe, const LoopContext& context, int num_nodes)
    : recipe_(recipe), context_(context) {
  const Communicator& ranks = context.mesh.group(kDataAxes);
  shape_.seq_len = recipe.seq_len;
  shape_.global_sequences = global_batch_sequences(recipe);
  shape_.rank = ranks.rank();
  shape_.num_ranks = ranks.size();
  shape_.num_nodes = nodes_of_data_ranks(ranks.size(), context.world.size(), num_nodes);
  shape_.vocab_size = model_layout(recipe.model).vocab_size;
  shape_.tokenizer = recipe.tokenizer;
  shape_.marks = reads_input(recipe.loss.terms(), "weight");
  shape_.seed = static_cast<uint64_t>(recipe.seed);
}

void TrainingData::open(const TrainState& state) {
  const InPhase phase("opening data");
  if (state.stage > static_cast<int64_t>(recipe_.data_stages.size()))
    fail(ExitCode::kUnusable,
         "[data] the checkpoint is in data stage {}, but the recipe has only {} data_stages", state.stage,
         recipe_.data_stages.size());
  loader_ = new_loader(state);
}

bool TrainingData::enter_stage(int64_t stage, TrainState& state) {
  if (stage == state.stage) return false;
  if (stage < state.stage)
    fail(ExitCode::kUnusable,
         "[data] step {} belongs to data stage {} by the recipe, but the checkpoint is in stage {} already: "
         "stages "
         "that have begun cannot be moved",
         state.step + 1, stage, state.stage);
  const std::string& name = recipe_.data_stages[static_cast<size_t>(stage - 1)].name;
  context_.reporter.event("data", fmt::format("data stage {} begins with step {}", name, state.step + 1),
                          {{"step", state.step}, {"stage", name}});
  state.stage = stage;
  state.data = {};
  state.controls.mix.clear();  // of other streams
  loader_.reset();             // before the next one takes memory
  loader_ = new_loader(state);
  return true;
}

Batch TrainingData::next() {
  const Range range("data wait");
  const InPhase phase("waiting for data");
  return loader_->next();
}

void TrainingData::skip_batches(int64_t count, TrainState& state) {
  state.data = loader_->cursor_after(count);
  loader_ = new_loader(state);
}

std::unique_ptr<DataLoader> TrainingData::new_loader(const TrainState& state) const {
  return make(state, state.data, state.controls.mix);
}

// What a command asks for and the data cannot do is refused; what cannot be read ends the run at the next
// batch.
std::unique_ptr<DataLoader> TrainingData::remixed(const TrainState& state, const Mix& mix) const {
  const DataCursor next = state.data.sample == 0 ? state.data : DataCursor{state.data.epoch + 1, 0};
  try {
    return make(state, next, mix);
  } catch (const Error& error) {
    fail(ExitCode::kRecipe, "{}", error.what());
  }
}

void TrainingData::switch_to(std::unique_ptr<DataLoader> loader, TrainState& state) {
  loader_ = std::move(loader);
  state.data = loader_->cursor();
}

std::unique_ptr<DataLoader> TrainingData::make(const TrainState& state, const DataCursor& cursor,
                                               const Mix& mix) const {
  return make_loader(with_mix(stage_data(recipe_, state.stage), mix), shape_, cursor, context_.opened,
                     state.order_marks);
}

}  // namespace tycho
