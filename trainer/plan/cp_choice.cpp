// Plans the mesh with either form.
#include "trainer/plan/cp_choice.h"

#include <algorithm>

#include "trainer/base/bytes.h"
#include "trainer/base/field_types.h"
#include "trainer/layout/cp_slots.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/plan/estimate.h"
#include "trainer/plan/region_traffic.h"

namespace tycho {
namespace {

int64_t buffer_bytes(const TrainConfig& config, int64_t num_ranks) {
  const TpShape tp = {config.parallel.tp, 0, config.parallel.sequence_parallel};
  const int64_t compute_bytes = config.precision == Precision::kBf16 ? 2 : 4;
  const BatchShape shape = {micro_batch_sequences(config, data_ranks(config.parallel, num_ranks)),
                            config.seq_len};
  int64_t sum = 0;
  for (const SlotSpec& slot :
       cp_slots(tp_spec(decoder_spec(config.model), tp), shape, compute_bytes, cp_shape(config.parallel)))
    sum += slot_bytes(slot, compute_bytes);
  return sum;
}

}  // namespace

std::vector<CpForm> compare_cp_forms(const TrainConfig& given, const ModelLayout& layout,
                                     const PlanDevices& devices) {
  std::vector<CpForm> forms;
  if (given.parallel.cp == 1) return forms;
  for (const CpAttention attention : {CpAttention::kGather, CpAttention::kRing}) {
    TrainConfig config = given;
    config.parallel.cp_attention = attention;
    const Plan plan = plan_mesh(config, layout, devices);
    CpForm form;
    form.attention = attention;
    for (const ByteItem& item : plan.traffic)
      if (item.name == "cp") form.received_bytes += item.num_bytes;
    form.buffer_bytes = buffer_bytes(config, devices.num_ranks);
    if (plan.estimate) {
      const Machine machine = planned_machine(config, devices);
      form.fits = device_bytes(plan, machine) <= machine.memory_bytes;
      form.step_s = plan.estimate->step_s;
      for (const AxisTime& axis : plan.estimate->axes)
        if (axis.axis == "cp") form.wait_s = axis.wait_s;
    }
    forms.push_back(form);
  }
  return forms;
}

CpAttention faster_form(const std::vector<CpForm>& forms) {
  const CpForm* best = nullptr;
  for (const CpForm& form : forms)
    if (form.fits && form.step_s > 0 && (!best || form.step_s < best->step_s)) best = &form;
  return best ? best->attention : CpAttention::kGather;
}

std::string forms_text(const std::vector<CpForm>& forms, CpAttention taken) {
  std::string text;
  for (const CpForm& form : forms) {
    text += fmt::format("  {:<20}{:>9}  buffers {}", enum_name(form.attention),
                        human_bytes(static_cast<double>(form.received_bytes)),
                        human_bytes(static_cast<double>(form.buffer_bytes)));
    if (form.step_s > 0)
      text += fmt::format(", waits {} of {}{}", time_text(form.wait_s), time_text(form.step_s),
                          form.fits ? "" : ", does not fit");
    text += form.attention == taken ? ", taken\n" : "\n";
  }
  return text;
}

}  // namespace tycho
