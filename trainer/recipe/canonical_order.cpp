// The leaves of the tree are micro-batches, so rules about these come first.
#include "trainer/recipe/canonical_order.h"

#include <bit>

namespace tycho {
namespace {

constexpr const char* kOrder = "parallel.reduce = \"canonical\"";

/// Checks that micro-batches are equal whichever rank computes them.
void check_leaves(const TrainConfig& config, ConfigProblems& problems) {
  if (!config.micro_batch || config.micro_batch->is_auto)
    return problems.add("micro_batch",
                        "{} needs micro-batches that do not depend on the number of ranks; write a number, "
                        "such as 1sp",
                        kOrder);
  const int64_t micro = micro_batch_sequences(config), batch = global_batch_sequences(config);
  if (micro > 0 && batch % micro != 0)
    problems.add("micro_batch",
                 "{} needs micro-batches of one size, and global_batch has {} sequences, which is not a "
                 "multiple of {}; write a number that divides {}",
                 kOrder, batch, micro, batch);
}

/// Checks that every rank has a whole subtree of the sum.
void check_ranks(const TrainConfig& config, int64_t num_ranks, ConfigProblems& problems) {
  const int64_t data = data_ranks(config.parallel, num_ranks), micro = micro_batch_sequences(config);
  const int64_t fewer = num_ranks / data * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(data)));
  if (!std::has_single_bit(static_cast<uint64_t>(data)))
    return problems.add(
        "parallel.reduce",
        "\"canonical\" works for 1, 2, 4, 8 and so on ranks that read different data, and this mesh has {}; "
        "start {} rank{}, or set parallel.reduce = \"ranks\"",
        data, fewer, fewer == 1 ? "" : "s");
  const int64_t batch = global_batch_sequences(config);
  if (batch % data == 0 && batch / data > micro && batch / data % micro != 0)
    problems.add(
        "micro_batch",
        "{} needs whole micro-batches on every rank, and each of {} ranks has {} sequences of a step, "
        "which is not a multiple of {}; write a number that divides {}",
        kOrder, data, batch / data, micro, batch / data);
}

/// Returns true when rows move to other positions of the batch with another number of ranks.
bool depends_on_ranks(const DataConfig& data) {
  const auto* mds = std::get_if<MdsConfig>(&data.value);
  return mds != nullptr &&
         (mds->compat == OrderCompat::kStreaming || mds->batching_method == BatchingMethod::kDevicePerStream);
}

void check_data_order(const std::string& path, const DataConfig& data, ConfigProblems& problems) {
  if (depends_on_ranks(data))
    problems.add(
        path,
        "{} needs an order of samples that does not depend on the number of ranks, and that of compat = "
        "\"streaming\" and of batching_method = \"device_per_stream\" does; leave these keys out",
        kOrder);
}

}  // namespace

void check_canonical_order(const TrainConfig& config, std::optional<int64_t> num_ranks,
                           ConfigProblems& problems) {
  const ParallelConfig& parallel = config.parallel;
  if (parallel.reduce != GradientOrder::kCanonical) return;
  const size_t before = problems.size();
  check_leaves(config, problems);
  if (parallel.reduce_dtype != Precision::kFp32)
    problems.add("parallel.reduce_dtype", "{} sums in fp32; write reduce_dtype = \"fp32\"", kOrder);
  if (parallel.fast_sums)
    problems.add("parallel.fast_sums", "{} adds in an order of its own; leave fast_sums out", kOrder);
  if (!config.attention.deterministic)
    problems.add("attention.deterministic",
                 "{} needs gradients of attention that are added in a fixed order; "
                 "leave it true",
                 kOrder);
  if (config.products.tuned)
    problems.add(
        "products.tuned",
        "{} needs one algorithm of a product on every mesh, and each mesh times its own; leave it false",
        kOrder);
  if (config.model.fp8.is_used() && config.model.fp8.recipe != Fp8Recipe::kRowwiseWithGwHp)
    problems.add(
        "fp8.recipe",
        "{} needs scales that do not depend on the other tokens of a pass; write \"rowwise_with_gw_hp\"",
        kOrder);
  if (config.clip.adaptive)
    problems.add("clip.adaptive",
                 "sums the squares of rows, of which ranks may have parts, and {} has no fixed order for "
                 "these; use clip.norm or clip.value",
                 kOrder);
  check_data_order("train_data", config.train_data, problems);
  for (const DataStageConfig& stage : config.data_stages)
    check_data_order("data_stages." + stage.name, stage.data, problems);
  if (problems.size() == before && num_ranks) check_ranks(config, *num_ranks, problems);
}

}  // namespace tycho
