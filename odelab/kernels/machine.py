"""The text of LLVM modules as machine code for this processor, by llvmlite; numba is not used."""

import ctypes
import functools
import os
import threading
from collections.abc import Callable

import numpy as np

alone = threading.Lock()  # LLVM's context is one for the whole process

# Kernels have their operations in order and their vectors written out. What LLVM usually does beyond these passes takes
# a third of the time to compile one, and makes none faster; loops over arrays it makes several times faster.
PASSES = ("sroa", "simplify_cfg", "instruction_combine", "new_gvn", "dead_code_elimination")


@functools.cache
def llvm():
    """llvmlite's functions, ready for this machine; they are loaded with the first kernel, not with odelab."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def processor() -> tuple[str, str]:
    """The processor that code is made for, and its features: this one, or what ODELAB_PROCESSOR names, for tests."""
    named = os.environ.get("ODELAB_PROCESSOR")
    return (named, "") if named else (llvm().get_host_cpu_name(), llvm().get_host_cpu_features().flatten())


class Machine:
    """The machine code of a module; it lives as long as this object.

    text          the module, as `odelab.graph.llvm.Module.text` writes it
    has_arrays    whether it has loops over arrays, which are for LLVM to make vectors of
    """

    def __init__(self, text: str, has_arrays: bool = False):
        with alone:
            binding, (name, features) = llvm(), processor()
            machine = binding.Target.from_default_triple().create_target_machine(opt=3, cpu=name, features=features)
            module = binding.parse_assembly(text)
            tuning = binding.create_pipeline_tuning_options(speed_level=2)
            tuning.loop_unrolling = False  # the loops are long, and their ends are rare
            passes = binding.create_pass_builder(machine, tuning)
            manager = passes.getModulePassManager() if has_arrays else binding.create_new_module_pass_manager()
            for step in () if has_arrays else PASSES:
                getattr(manager, f"add_{step}_pass")()
            manager.run(module, passes)
            self.engine = binding.create_mcjit_compiler(module, machine)
            self.engine.finalize_object()

    def function(self, name: str, count: int) -> Callable:
        """The function of this name, of `count` addresses and whole numbers; other threads run while it does."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * count)(self.engine.get_function_address(name))


def address(array) -> int:
    """Where an array begins, whose numbers lie one after the other."""
    if not array.flags.c_contiguous:
        raise ValueError("machine code needs arrays whose numbers lie one after the other.")
    if array.flags.writeable and array.size:  # the short way, which takes a fifth of the time
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    return array.__array_interface__["data"][0]


def aligned_rows(rows: int, n: int) -> np.ndarray:
    """An empty array (rows, n) that begins on a cache line, for loops that wait for memory."""
    line = 8  # numbers
    block = np.empty(rows * n + line)
    first = (-block.ctypes.data // block.itemsize) % line
    return block[first : first + rows * n].reshape(rows, n)
