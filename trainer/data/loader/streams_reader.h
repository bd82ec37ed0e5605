// Rows of several data sets under one numbering.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/rows/batch.h"
#include "trainer/data/rows/row_reader.h"

namespace tycho {

/// Joins streams: the samples of the second stream follow those of the first, and so on. Requires fewer than
/// 2^32 samples in all, and streams opened for a vocabulary of vocab_size. If only some streams tell
/// documents apart, each row of the others is one document.
std::unique_ptr<RowReader> make_streams_reader(std::vector<std::unique_ptr<RowReader>> streams,
                                               int64_t vocab_size);

}  // namespace tycho
