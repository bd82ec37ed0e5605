// Record mode: launches are written down, not computed (TYCHO_STANDIN_RECORD names the file).
#pragma once

/// True if nothing is computed: device memory is address space alone, which reads as zeros.
extern "C" bool standin_records();
/// Writes down a launch: its name, what it reads and writes in bytes, and its FLOPs.
extern "C" void standin_record(const char* name, double read, double written, double flops);
/// Writes what was recorded since the last mark to the file, under this title.
extern "C" void standin_mark(const char* title);
