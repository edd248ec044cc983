# needs: nvidia
"""NVRTC: every kernel compiles for NVIDIA's GPUs, keeps each rounding apart, and becomes the machine code that it was meant to be.

No GPU is needed. The programs are those that operations ask for (tests/device/gpu/programs.c).
"""

import collections
import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import nvidia

ARCHITECTURES = (75, 80, 90, 120)
EXACT = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "-default-device")
MARKED = (80, 90)  # the architectures whose main loops are counted
SHARE = 0.78       # of fused multiply-adds among the instructions of a large product's main loop
SPILLS = 32        # accesses to local memory in a kernel: compilers of some versions put a few numbers there that 128 registers do not hold
IN_LOOP = 8        # of them in a main loop
UNDIVIDED = ("product", "attention_", "recurrent_backward_weights", "gru_backward")  # kernels whose inner loops divide nowhere
GATED = ("lstm_", "gru_forward")  # those that have a loop over gates, which divides, beside that over weights, which does not
LARGE = 64         # fused multiply-adds of a thread for each number of the depth, from which a product is large

ROOTS = [os.path.dirname(path) if os.path.isfile(path) else path for path in nvidia.__path__]


def find(*patterns):
    """The first file of NVIDIA's packages of one of these names."""
    for pattern in patterns:
        for root in ROOTS:
            for path in sorted(glob.glob(os.path.join(root, "**", pattern), recursive=True)):
                return path
    return None


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def version(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def get(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, text)
        return text.raw[: size.value]

    def compile(self, name, text, options, what):
        """PTX or CUBIN of a program."""
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
        values = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self.library.nvrtcCompileProgram(program, len(options), values)
        log = self.get(program, "ProgramLog").rstrip(b"\0").decode()
        assert not failed, f"{name} {' '.join(options)}: {log}"
        result = self.get(program, what)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return result


def read(path):
    """A program's text, its options, and its kernels with their numbers of threads."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    options = re.match(r"// options: (.*)", text).group(1).split()
    kernels = {name: int(threads) for name, threads in re.findall(r"^// kernel: (\w+) (\d+)$", text, re.M)}
    assert kernels, path
    return text, options, kernels


def roundings(nvrtc, name, text, options):
    """All arithmetic on floats rounds to nearest, each operation by itself; nobody made a fused multiply-add but D_FMA, nor
    a quotient but D_DIV, which divides on devices that round quotients wrongly, too."""
    marked = text
    for function, mark, operands in (("__fmaf_rn(", "one_rounding", "float, float, float"), ("__fdiv_rn(", "one_quotient", "float, float")):
        assert function in text, name
        marked = f'extern "C" __device__ float {mark}({operands});\n' + marked.replace(function, f"{mark}(")
    ptx = nvrtc.compile(name, marked, [*EXACT, "--gpu-architecture=compute_80", *options], "PTX").decode()
    found = collections.Counter(re.findall(r"^\s*(?:@%p\d+ )?((?:add|sub|mul|mad|fma|div|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh)\.[\w.]*f32)", ptx, re.M))
    assert found, name
    for instruction in found:
        assert re.fullmatch(r"(add|sub|mul|sqrt)\.rn\.f32", instruction), f"{name}: {instruction} in {found}"
    return found


def machine_code(nvdisasm, cubin):
    """The instructions of each kernel, with the labels of their loops."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([nvdisasm, "-c", file.name], capture_output=True, text=True, check=True).stdout
    kernels = {}
    for section in re.split(r"\n(?=\.text\.)", text):
        head = re.match(r"\.text\.(\S+):", section)
        if not head:
            continue
        instructions, labels = [], {}
        for line in section.split("\n"):
            if label := re.match(r"^(\.L_x_\d+):", line.strip()):
                labels[label.group(1)] = len(instructions)
            elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
                instructions.append(instruction.group(1))
        kernels[head.group(1)] = (instructions, labels)
    return kernels


FUNCTION = "CALL $"  # jumps within a kernel may be calls, too


def operations(instructions):
    plain = [re.sub(r"^@!?U?P\w+\s+", "", text) for text in instructions]
    return collections.Counter(FUNCTION if re.match(r"CALL.*`\(\$", text) else text.split()[0] for text in plain)


def local(used):
    """Accesses to the memory that compilers put aside what registers do not hold."""
    return sum(n for operation, n in used.items() if operation.startswith(("LDL", "STL")))


def inner_loops(instructions, labels):
    """What the loops with fused multiply-adds consist of that have no loop with any inside; the one with the most of them first."""
    loops = []
    for end, text in enumerate(instructions):
        branch = re.search(r"BRA.*?`\((\.L_x_\d+)\)", text)
        if branch and labels.get(branch.group(1), end + 1) <= end:
            loops.append((labels[branch.group(1)], end))
    counts = {loop: operations(instructions[loop[0] : loop[1] + 1]) for loop in loops}
    loops = [loop for loop in counts if counts[loop]["FFMA"]]
    inner = [loop for loop in loops if not any(loop[0] <= other[0] and other[1] <= loop[1] for other in loops if other != loop)]
    return sorted((counts[loop] for loop in inner), key=lambda count: -count["FFMA"])


def divisions(used):
    """What a division becomes, of integers or of floats: a reciprocal, conversions, a function."""
    return sum(n for operation, n in used.items() if operation.startswith(("MUFU.RCP", "I2F", "F2I", FUNCTION)))


def judge(nvrtc, nvdisasm, paths):
    count, large, shares, aside = 0, 0, [], []
    for path in paths:
        text, options, kernels = read(path)
        name = os.path.basename(path)
        roundings(nvrtc, name, text, options)
        values = dict(option[2:].split("=") for option in options if "=" in option)
        work = int(values.get("PM", 0)) * int(values.get("PN", 0))
        for architecture in ARCHITECTURES:
            cubin = nvrtc.compile(name, text, [*EXACT, f"--gpu-architecture=sm_{architecture}", *options], "CUBIN")
            count += len(kernels)
            if not nvdisasm:
                continue
            code = machine_code(nvdisasm, cubin)
            assert set(kernels) <= set(code), (name, set(kernels) - set(code))
            for kernel in kernels:
                instructions, labels = code[kernel]
                loops = inner_loops(instructions, labels)
                loop = loops[0] if loops else None
                total = local(operations(instructions))
                assert total <= SPILLS and (not loop or local(loop) <= IN_LOOP), f"{name}, {kernel}, sm_{architecture}: {total} accesses to local memory"
                free = sum(divisions(used) == 0 for used in loops)
                if architecture in MARKED and kernel.startswith(UNDIVIDED):
                    assert loops and free == len(loops), f"{name}, {kernel}, sm_{architecture}: divisions in {len(loops) - free} of {len(loops)} inner loops"
                elif architecture in MARKED and kernel.startswith(GATED):
                    assert free, f"{name}, {kernel}, sm_{architecture}: divisions in all {len(loops)} inner loops"
                if total:
                    aside.append(f"{name}, {kernel}, sm_{architecture}: {total}")
                if kernel == "product" and work >= LARGE and architecture in MARKED:
                    share = loop["FFMA"] / sum(loop.values())
                    print(f"{name} {' '.join(options)} sm_{architecture}: {loop['FFMA']} of {sum(loop.values())} = {share:.3f}")
                    shares.append(share)
                    large += 1
    print(f"NVRTC {nvrtc.version()}: {len(paths)} programs, {count} kernels for sm_{', sm_'.join(map(str, ARCHITECTURES))}; no contraction")
    if not nvdisasm:
        print("no nvdisasm (pip install nvidia-cuda-nvdisasm): machine code was not looked at")
        return
    assert large, "no large product among the programs"
    assert min(shares) >= SHARE, f"a main loop has {min(shares):.3f} of fused multiply-adds, less than {SHARE}"
    print(f"accesses to local memory: {'; '.join(aside) or 'none'}")
    print("no divisions in inner loops of products, attention and recurrent layers")
    print(f"fused multiply-adds in the main loops of large products: {min(shares):.3f} to {max(shares):.3f}")


def layer(nvrtc_path, tests, programs):
    """The layer for CUDA finds this NVRTC, and its options and architectures are this NVRTC's: programs become machine code for a device
    that it knows, and PTX for one that is newer. The driver is the tests' stand-in, which loads both and runs none."""
    with tempfile.TemporaryDirectory(prefix="trireme-cuda-") as place:
        os.symlink(os.path.join(tests, "cuda", "libcuda.so.1"), os.path.join(place, "libcuda.so.1"))
        paths = os.pathsep.join([place, os.path.dirname(nvrtc_path)])
        for arch, kind in ((80, "cubin"), (81, "ptx")):
            environment = {**os.environ, "LD_LIBRARY_PATH": paths, "TRIREME_STAND_IN": f"paper,version=13000,arch={arch}"}
            words = [os.path.join(tests, "cuda_compiler"), programs]
            done = subprocess.run(words, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            lines = done.stdout.splitlines()
            assert len(lines) > 20 and all(line.endswith(" " + kind) for line in lines[1:]), (arch, lines)
            print(f"the layer for CUDA: {lines[0]}: {len(lines) - 1} programs, {kind}")


def main():
    nvrtc_path, nvdisasm = find("libnvrtc.so.1[0-9]"), find("nvdisasm") or shutil.which("nvdisasm")
    if not nvrtc_path:
        print("skipped: no libnvrtc among the packages of NVIDIA; pip install nvidia-cuda-nvrtc")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="trireme-nvrtc-") as place:
        subprocess.run([os.path.join(sys.argv[3], "gpu_programs"), place], check=True, capture_output=True)
        layer(nvrtc_path, sys.argv[3], place)
        judge(Nvrtc(nvrtc_path), nvdisasm, sorted(glob.glob(os.path.join(place, "*.cu"))))


main()
