// FATHOM_PER_ISA(declaration): the same function in the namespace of every ISA that is built.
// Only declarations and plain structs here: see vec16.h for the rules of files below cpu/.
#pragma once

#if defined(__x86_64__)
#define FATHOM_PER_ISA(...)             \
  namespace fathom::kernels::portable { \
  __VA_ARGS__;                          \
  }                                     \
  namespace fathom::kernels::avx2 {     \
  __VA_ARGS__;                          \
  }                                     \
  namespace fathom::kernels::avx512 {   \
  __VA_ARGS__;                          \
  }
#else
#define FATHOM_PER_ISA(...)             \
  namespace fathom::kernels::portable { \
  __VA_ARGS__;                          \
  }
#endif
