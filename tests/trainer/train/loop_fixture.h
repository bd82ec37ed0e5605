// Shared by tests of the parts of the training loop: a tiny model on one rank, and a record of what is
// reported.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/models/model.h"
#include "trainer/recipe/config_io.h"
#include "trainer/sharding/init.h"
#include "trainer/train/loop_context.h"
#include "trainer/train/train_units.h"

namespace tycho {

/// Keeps what is reported.
struct KeptReports final : Reporter {
  struct Event {
    std::string kind, text;
    Json facts;
  };
  void metric(int64_t step, const std::string& name, double value) override {
    metrics.push_back({{"step", step}, {"name", name}, {"value", value}});
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    events.push_back({kind, text, facts});
  }
  void table(int64_t, const NamedTable& table) override { tables.push_back(table); }
  std::vector<Event> events;
  std::vector<Json> metrics;
  std::vector<NamedTable> tables;
};

class LoopTest : public RunTest {
 public:
  /// Weights of config_ in units of their own, as a run takes them from the seed.
  struct SmallModel {
    SmallModel(const TrainConfig& config, const LoopContext& context)
        : rules(param_rules(config.optimizer, config.param_groups, model_layout(config.model).units)),
          units(make_train_units(config, context.mesh, context.device)),
          model(config.model, *units, micro_batch_shape(config, context.mesh), at::kFloat, context.device,
                config.recompute, parallel_region(config, context.mesh), pp_stage(config, context.mesh)) {
      for (const OwnedRange& range : units->owned()) initialise(range, static_cast<uint64_t>(config.seed));
    }
    std::vector<Tensor> weights() const {
      std::vector<Tensor> all;
      for (const OwnedRange& range : units->owned()) all.push_back(range.weights().clone());
      return all;
    }
    ParamRules rules;
    std::unique_ptr<UnitStore> units;
    Model model;
  };

 protected:
  std::unique_ptr<Communicator> world_ = make_world_of_one();
  Mesh mesh_{MeshShape{}, *world_};
  KeptReports reports_;
  OpenedData opened_;
  LoopContext context_{at::kCPU, *world_, mesh_, reports_, stop_, opened_};
};

}  // namespace tycho
