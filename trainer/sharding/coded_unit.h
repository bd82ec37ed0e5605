// A unit whose matrices travel and multiply as codes of fp8.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/coded_unit.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

/// Makes codes of the range of a unit that this rank owns, and gathers them. Movable; views stay valid.
class CodedUnit {
 public:
  /// params: the elements that rank `rank` owns, bf16, padded. buffer: flat memory for all elements of the
  /// unit as bf16, which other units may use.
  CodedUnit(const UnitLayout& layout, CodedUnitLayout places, int64_t rank, const Tensor& params,
            const Tensor& buffer);

  int64_t num_matrices() const { return static_cast<int64_t>(places_.matrices.size()); }
  /// Returns the largest magnitude of this rank's part of each matrix, 0 where it has none of one.
  Tensor maxima() const;
  /// Makes the codes and factors that follow from the largest magnitudes of the whole matrices.
  void encode(const Tensor& amax_P);
  /// Returns the calls that gather the unit, on the ranks that share it.
  std::vector<GroupedCall> gathers() const;
  /// Puts what the calls have gathered in its place. Call it after them.
  void place();
  /// The unit's views, where matrices are codes of e4m3; then the factors of each view's rows, undefined for
  /// views that have none (BlockParams).
  const Views& params() const { return views_; }
  /// Bytes that this rank sends.
  const Tensor& sent() const { return sent_; }

 private:
  /// Elements that a rank owns and sends as bf16: from `from` of what it sends to `to` in the unit's order.
  struct Piece {
    int64_t rank = 0, from = 0, to = 0, size = 0;
    int64_t owned = 0;  // first one among the elements that the rank owns
  };
  Tensor own_rest() const;
  void make_pieces(int64_t numel);
  void make_views(const UnitLayout& layout);

  CodedUnitLayout places_;
  int64_t rank_;
  std::vector<Extent> extents_;  // of the elements that this rank owns
  UnitLayout layout_;            // owner of what extents_ point to
  std::vector<Piece> pieces_;
  Tensor params_, sent_, factors_;
  Tensor codes_, rest_, placed_;  // parts of the buffer: bytes, bf16, bf16
  Views views_;
};

}  // namespace tycho
