// Curves and histograms as text for Lua: at the prompt, and in entries that are sent to a live run.
#pragma once
#include "bindings/define/lua_util.h"

namespace tycho {

/// Makes require "tycho.drawing" give plot(x, list of y, their names), plot_metrics(metrics_path, name, ...)
/// and histogram(list, bins). Each returns text, as wide as the terminal where there is one.
void open_drawing(lua_State* L);

}  // namespace tycho
