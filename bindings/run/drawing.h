// What draws curves and histograms for Lua: at the prompt, and in entries that are sent to a live run.
#pragma once
#include "bindings/define/lua_util.h"

namespace tycho {

/// Registers the module "tycho.drawing" with plot(x, y, title), plot_metric(metrics_path, name) and
/// histogram(list, bins). Each returns text, as wide as the terminal if there is one.
void open_drawing(lua_State* L);

}  // namespace tycho
