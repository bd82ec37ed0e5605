# Links with the fastest linker that the machine has. GNU ld takes 3.5 s for `tycho` on a Zen 3, gold 1.5 s, lld 0.7 s; gold is part of
# Debian's binutils. Sanitizers keep the compiler's own.
include(CheckLinkerFlag)
if(NOT TYCHO_SANITIZE)
  foreach(linker lld gold)
    check_linker_flag(CXX -fuse-ld=${linker} TYCHO_LINKS_WITH_${linker})
    if(TYCHO_LINKS_WITH_${linker})
      add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=${linker}>)
      break()
    endif()
  endforeach()
endif()
