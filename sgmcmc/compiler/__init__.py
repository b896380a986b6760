"""How Python becomes machine code.

open_functions   behaviour that is given per type: `open_function`, `implements`, `leaf`, `loop`
literals         what Numba is shown of an implementation: weak literals, intrinsics
intrinsics       operations of LLVM's that Numba has no word for
kernels          `kernel`: a compiled function that is kept on disk
fingerprints     the content of what is compiled in
store            the files that compiled code is kept in
field_docs       docstrings of a part's fields
numba_bridge     all that touches Numba's insides
plain            the same without it
"""
