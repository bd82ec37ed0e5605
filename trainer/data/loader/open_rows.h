// Opens training data of any kind.
#pragma once
#include <cstdint>
#include <memory>

#include "trainer/data/config.h"
#include "trainer/data/loader/data_order.h"
#include "trainer/data/row_reader.h"

namespace tycho {

/// Opens data of any kind. `order`: for rows that are packed batch by batch, and
/// for the ranks that share a machine. Throws Error (kUnusable) when it
/// is not there or does not fit.
std::unique_ptr<RowReader> open_rows(const DataConfig& data, const RowShape& shape,
                                     const OrderShape& order = {});

/// Samples of an epoch: of MDS from index.json alone, unless it is cut anew; text is tokenised and packed for
/// it. Throws as
/// open_rows and data_order do.
int64_t count_samples(const DataConfig& data, const RowShape& shape, const OrderShape& order = {});

}  // namespace tycho
