// Number formats that a run computes in, and the kinds of device it computes on.
#pragma once
#include "trainer/base/fields.h"

namespace tycho {

enum class Precision { kFp32, kBf16 };
constexpr EnumNames<Precision, 2> enum_names(Precision) {
  return {{{"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}}};
}

enum class DeviceKind { kAuto, kCpu, kCuda };
constexpr EnumNames<DeviceKind, 3> enum_names(DeviceKind) {
  return {{{"auto", DeviceKind::kAuto}, {"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}}};
}

}  // namespace tycho
