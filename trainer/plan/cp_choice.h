// Keys and values of ranks along cp: gathered, or passed around a ring. What each costs, and which is faster.
// Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/layout/model_layout.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns both forms for a config with cp > 1, gather first; empty for other configs. Keeps all other
/// settings, and chooses the sequences of micro_batch = "auto". `layout` is that of the config's model;
/// devices.num_ranks must be set.
std::vector<CpForm> compare_cp_forms(const TrainConfig& config, const ModelLayout& layout,
                                     const PlanDevices& devices);

/// Returns the fastest of the forms that fit; gather when none does, or when there is no estimate.
CpAttention faster_form(const std::vector<CpForm>& forms);

/// Returns the forms in lines of at most 80 columns, with `taken` marked.
std::string forms_text(const std::vector<CpForm>& forms, CpAttention taken);

}  // namespace tycho
