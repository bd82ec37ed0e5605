// Opens training data of any kind.
#pragma once
#include <cstdint>
#include <memory>

#include "trainer/data/loader/data_order.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Opens data of any kind. `order` is used for rows that are packed batch by batch, and for ranks that share
/// a machine. Throws Error (kUnusable) when the data is missing or does not fit.
std::unique_ptr<RowReader> open_rows(const DataConfig& data, const RowShape& shape,
                                     const OrderShape& order = {});

/// Number of samples of an epoch. For MDS without `recut`, this reads only index.json; text is tokenised and
/// packed. Throws as open_rows and data_order do.
int64_t count_samples(const DataConfig& data, const RowShape& shape, const OrderShape& order = {});

}  // namespace tycho
