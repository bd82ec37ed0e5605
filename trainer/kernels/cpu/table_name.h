// Name of a table: "cpu avx2".
#pragma once

#define TYCHO_TEXT_OF(x) #x
#define TYCHO_TEXT(x) TYCHO_TEXT_OF(x)
#define TYCHO_TABLE_NAME "cpu " TYCHO_TEXT(TYCHO_ISA)
