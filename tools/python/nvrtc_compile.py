#!/usr/bin/env python3
"""Compiles a CUDA C++ file with NVRTC (no GPU needed) and counts the contracted operations in the PTX.

    nvrtc_compile.py SOURCE.cu [--arch ARCH] [--output FILE.ptx] [OPTION ...]

ARCH is a virtual architecture (default compute_90); other options are passed to NVRTC. C++17 and IEEE arithmetic (no
contraction, no flush to zero) are always on. NVRTC is loaded from the Python package nvidia-cuda-nvrtc, else from the
library path. Prints `fma N`, the number of fused multiply-adds in the PTX. Exit status 0: compiled; 1: errors in the
source (printed); 3: NVRTC not found.
"""
import argparse
import ctypes
import glob
import re
import site
import sys


def library():
    """Loads the NVRTC library."""
    places = site.getsitepackages() + [site.getusersitepackages()]
    found = [f for p in places for f in sorted(glob.glob(p + "/nvidia/**/libnvrtc.so.*", recursive=True))]
    for name in found + ["libnvrtc.so.13", "libnvrtc.so"]:
        try:
            # NVRTC opens this library by its bare name, so it must already be loaded
            for builtins in glob.glob(name.rpartition("/")[0] + "/libnvrtc-builtins.so.*"):
                ctypes.CDLL(builtins)
            return ctypes.CDLL(name)
        except OSError:
            continue
    print("NVRTC not found: pip install 'nvidia-cuda-nvrtc==13.0.*'", file=sys.stderr)
    sys.exit(3)


def text(nvrtc, program, size, get):
    """Returns a text of NVRTC, which needs one call for the size and one for the text."""
    n = ctypes.c_size_t()
    getattr(nvrtc, size)(program, ctypes.byref(n))
    buffer = ctypes.create_string_buffer(n.value)
    getattr(nvrtc, get)(program, buffer)
    return buffer.value.decode()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("source")
    parser.add_argument("--arch", default="compute_90")
    parser.add_argument("--output")
    arguments, extra = parser.parse_known_args()
    with open(arguments.source, encoding="utf-8") as f:
        source = f.read()
    exact = ["--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"]
    options = [f"--gpu-architecture={arguments.arch}", "--std=c++17", *exact, *extra]
    encoded = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    nvrtc, program = library(), ctypes.c_void_p()
    name = arguments.source.encode()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name, 0, None, None)
    status = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
    log = text(nvrtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
    if log.strip():
        print(log, file=sys.stderr)
    if status != 0:
        sys.exit(1)
    ptx = text(nvrtc, program, "nvrtcGetPTXSize", "nvrtcGetPTX")
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as f:
            f.write(ptx)
    print("fma", len(re.findall(r"\bfma\.", ptx)))


if __name__ == "__main__":
    main()
