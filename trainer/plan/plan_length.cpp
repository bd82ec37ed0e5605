// Counts what the data says of itself; a data set that is not there leaves the length open.
#include "trainer/plan/plan_length.h"

#include "trainer/base/error.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/chat_rows.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/layout/model_layout.h"
#include "trainer/plan/count_step_tokens.h"
#include "trainer/recipe/run_clock.h"

namespace tycho {
namespace {

void add_data(TrainConfig& config, Plan& plan) {
  const RowShape shape = row_shape(config);
  const OrderShape order = order_shape(config);
  const OpenedData opened;
  try {
    plan.num_samples = count_samples(config.train_data, shape, opened, order);
    if (const auto* chat = std::get_if<ChatConfig>(&config.train_data.value))
      plan.rows = chat_rows(open_chat_dataset(*chat, shape, opened), order).lines();
    plan.step_tokens = config.step_tokens = count_step_tokens(config, opened);
  } catch (const Error& error) {
    plan.data_problem = error.what();
  }
}

void add_length(const TrainConfig& config, Plan& plan) {
  const int64_t sequences = global_batch_sequences(config);
  plan.tokens_per_step = sequences * config.seq_len;
  plan.steps = total_steps(config, plan.num_samples);
  plan.tokens = trained_tokens(config, plan.steps);
  const int64_t steps_per_epoch = plan.num_samples / sequences;
  if (steps_per_epoch > 0)
    plan.data_epochs = static_cast<double>(plan.steps) / static_cast<double>(steps_per_epoch);
}

}  // namespace

Plan plan_length(const TrainConfig& given) {
  TrainConfig config = given;
  Plan plan;
  plan.num_params = model_layout(config.model).num_params();
  add_data(config, plan);
  add_length(config, plan);
  return plan;
}

}  // namespace tycho
