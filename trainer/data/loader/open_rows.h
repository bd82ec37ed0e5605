// Opens training data of any kind.
#pragma once
#include <cstdint>
#include <memory>

#include "trainer/data/loader/data_order.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/recipe/data.h"

namespace tycho {

struct TrainConfig;

/// Returns what data of a recipe must fit, and what the order of its samples depends on, for one rank.
RowShape row_shape(const TrainConfig& config);
OrderShape order_shape(const TrainConfig& config);

/// Opens data of any kind; data that is held in memory stays in `opened`. `order` is used for rows that are
/// packed batch by batch, and for ranks that share a machine. Throws Error (kUnusable) when the data is
/// missing or does not fit.
std::unique_ptr<RowReader> open_rows(const DataConfig& data, const RowShape& shape, const OpenedData& opened,
                                     const OrderShape& order = {});

/// Number of samples of an epoch. For MDS without `recut`, this reads only index.json; text is tokenised and
/// packed. Throws as open_rows and data_order do.
int64_t count_samples(const DataConfig& data, const RowShape& shape, const OpenedData& opened,
                      const OrderShape& order = {});

}  // namespace tycho
