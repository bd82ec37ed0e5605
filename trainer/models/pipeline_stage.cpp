// Forward passes through all parts of a model, in order.
#include "trainer/models/pipeline_stage.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

namespace tycho {

// Part p of the model is chunk p / n of stage p % n.
int PipelineStage::neighbour(size_t chunk, int64_t parts_on) const {
  const int64_t part = static_cast<int64_t>(chunk) * part_.num_stages + part_.stage;
  return static_cast<int>((part + parts_on) % part_.num_stages);
}

void PipelineStage::receive_input(size_t chunk, Tensor& x) const {
  if (is_shared() && !part_.has_embedding(chunk)) ranks_->recv(x, neighbour(chunk, -1));
}

void PipelineStage::send_output(size_t chunk, const Tensor& x) const {
  if (is_shared() && !part_.has_head(chunk)) ranks_->send(x, neighbour(chunk, 1));
}

void PipelineStage::share(Tensor& x, int64_t stage) const {
  if (is_shared()) ranks_->broadcast(x, static_cast<int>(stage));
}

int64_t PipelineStage::least(int64_t mine) const {
  if (!is_shared()) return mine;
  const Tensor own = at::full({1}, mine, at::kLong);
  Tensor all = at::empty({part_.num_stages}, at::kLong);
  ranks_->all_gather(all, own);
  return all.min().item<int64_t>();
}

}  // namespace tycho
