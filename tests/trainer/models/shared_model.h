// A model that several ranks share along any axes, each a thread, and the same one on one rank: what tests of
// tensor parallel, context parallel and the pipeline have in common.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/trainer/aten.h"
#include "tests/trainer/models/model_cases.h"
#include "trainer/comm/mesh.h"
#include "trainer/models/decoder.h"
#include "trainer/models/model.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {

struct Sharing {
  const char* name;
  int64_t tp = 2;
  int64_t cp = 1;
  bool ring = false;  // of keys and values along cp
  bool sequence = true;
  int replicate = 1, shard = 1;
  bool keep_grads = false;
  int micro_batches = 1;  // of each rank that reads data of its own
  RecomputeConfig recompute = {};
  std::function<bool(const ParamSpec&)> frozen = {};
  int64_t width = 0;  // of rows whose padding is trimmed; 0: they are not
};

/// Whether ranks can share the heads of a model.
bool divides(const DecoderSpec& spec, int64_t tp);

class SharedModel : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override;
  /// Another model than the case's.
  void take(const ModelConfig& config, BatchShape shape);
  /// width: of its rows; 0: all of them.
  MicroBatch micro_batch(int64_t i, bool first, bool last, int64_t width = 0) const;
  double step(Model& model, UnitStore& units, int64_t first, int64_t count, int64_t width = 0) const;
  /// Losses and gradients of two steps; nothing where such ranks cannot share the model.
  void expect_as_one_rank(const Sharing& sharing);
  /// A store of a rank's part of the model, filled.
  std::unique_ptr<UnitStore> store_of(const std::vector<UnitSpec>& specs, const Mesh& mesh,
                                      bool keep_grads = false) const;
  /// Those of a rank's part of the model against those of one rank that has all of it.
  static void expect_same_gradients(UnitStore& units, const std::vector<UnitSpec>& specs, LocalUnits& one,
                                    int rank);

  ModelConfig config_;
  BatchShape shape_;
  ModelLayout layout_;
  std::unique_ptr<LocalUnits> whole_;
  std::vector<Tensor> tokens_;
  Tensor documents_;
};

/// Logits of rows of a decoder that have sequences of their own, [5, V].
Tensor logits_of_rows(const ModelConfig& config, const std::vector<Tensor>& tokens, UnitStore& units,
                      const ParallelRegion& region, const PipelineStage& stage = {});

/// MPT with every kind of dropout.
MptConfig with_dropout(PositionKind positions);

}  // namespace tycho
