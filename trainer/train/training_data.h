// The batches of a run: of train_data, then of each of data_stages, in the proportions that commands set.
#pragma once
#include <cstdint>
#include <memory>

#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/mix.h"
#include "trainer/data/order/order_marks.h"
#include "trainer/data/rows/batch.h"
#include "trainer/recipe/train_config.h"
#include "trainer/state/train_state.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Reads the batches of this rank. TrainState has the position: `stage`, `data` and `controls.mix`. Owned by
/// the trainer's thread.
class TrainingData {
 public:
  /// `num_nodes`: machines that all ranks are spread over. The recipe and the context outlive it.
  TrainingData(const TrainConfig& recipe, const LoopContext& context, int num_nodes);

  /// Opens the data at the state's position. Throws Error (kUnusable), also for a stage that the recipe
  /// lacks.
  void open(const TrainState& state);
  /// Opens the data of `stage` at its start and returns true, if it differs from the state's. Throws Error
  /// (kUnusable) for an earlier stage.
  bool enter_stage(int64_t stage, TrainState& state);
  /// Returns the next batch. Blocks until it is ready.
  Batch next();
  /// Returns the position after the newest batch of next().
  DataCursor cursor() const { return loader_->cursor(); }
  /// Returns DataLoader::order_marks; empty before open().
  OrderMarks order_marks() { return loader_ ? loader_->order_marks() : OrderMarks(); }
  void skip_batches(int64_t count, TrainState& state);
  /// Returns another loader of the same data, at the state's position.
  std::unique_ptr<DataLoader> new_loader(const TrainState& state) const;
  /// Returns a loader that begins the next epoch with these proportions of the streams. Throws Error
  /// (kRecipe) when the data does not allow them.
  std::unique_ptr<DataLoader> remixed(const TrainState& state, const Mix& mix) const;
  /// Uses a loader of remixed() from now on.
  void switch_to(std::unique_ptr<DataLoader> loader, TrainState& state);

 private:
  std::unique_ptr<DataLoader> make(const TrainState& state, const DataCursor& cursor, const Mix& mix) const;

  const TrainConfig& recipe_;
  const LoopContext& context_;
  LoaderShape shape_;
  std::unique_ptr<DataLoader> loader_;  // null before open()
};

}  // namespace tycho
