// Keys and values of ranks along cp: gathered, or passed around a ring. What each costs, and which is faster.
// Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/parallel/config.h"
#include "trainer/plan/plan.h"

namespace tycho {

/// Of a config with cp > 1, gather first; nothing for others. All other settings are as given, and a number
/// of sequences for micro_batch = "auto". `layout` is that of the config's model, `devices.num_ranks` is
/// given.
std::vector<CpForm> compare_cp_forms(const TrainConfig& config, const ModelLayout& layout,
                                     const PlanDevices& devices);

/// The fastest of those that fit; gather where none does, or where there is no estimate.
CpAttention faster_form(const std::vector<CpForm>& forms);

/// The forms in lines of at most 80 columns, `taken` marked.
std::string forms_text(const std::vector<CpForm>& forms, CpAttention taken);

}  // namespace tycho
