// Memory for large copies.
#include "trainer/base/page_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>

namespace tycho {
namespace {

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;

TEST(PageMemory, StartsOnAPageAndHoldsEveryByte) {
  for (const size_t num_bytes : {size_t{0}, size_t{1}, kPage, kHugePage - 1, kHugePage, 3 * kHugePage + 1}) {
    const PageMemory memory = page_memory(num_bytes);
    const size_t page = num_bytes >= kHugePage ? kHugePage : kPage;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % page, 0U) << num_bytes;
    for (size_t at = 0; at < num_bytes; ++at) memory.get()[at] = static_cast<char>(at);
    for (size_t at = 0; at < num_bytes; at += 997) ASSERT_EQ(memory.get()[at], static_cast<char>(at));
  }
}

TEST(PageMemory, MoreThanThereIsIsAnError) {
  EXPECT_THROW(page_memory(std::numeric_limits<size_t>::max() / 2), std::bad_alloc);
}

}  // namespace
}  // namespace tycho
