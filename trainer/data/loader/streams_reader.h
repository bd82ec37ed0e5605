// Rows of several data sets under one numbering.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/batch.h"
#include "trainer/data/row_reader.h"

namespace tycho {

/// The samples of the second stream follow those of the first, and so on. Fewer than 2^32 in all. They
/// were opened for a vocabulary of vocab_size. Where only some tell documents apart, the rows of the others
/// are one document.
std::unique_ptr<RowReader> make_streams_reader(std::vector<std::unique_ptr<RowReader>> streams,
                                               int64_t vocab_size);

}  // namespace tycho
