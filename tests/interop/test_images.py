# needs: PIL
# needs: numpy
"""Pillow: the same pixels of every kind of PNG and JPEG, in colour and in grey, to the level."""

import ctypes
import ctypes.util
import io
import os
import struct
import warnings
import zlib

import numpy as np
from PIL import Image

from common import place, trireme

warnings.simplefilter("ignore")  # Pillow would keep the alpha of palettes
WIDTH, HEIGHT = 67, 45  # neither whole blocks of JPEG nor whole bytes of few bits
RANDOM = np.random.default_rng(7)


def picture(channels):
    """Edges and slopes, so that JPEG has something to round, and noise in a corner: [HEIGHT, WIDTH, channels]."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [(x * (3 + c) + y * (5 - c) + 90 * ((x // 9 + y // 7 + c) % 2)) % 256 for c in range(channels)]
    pixels = np.stack(planes, -1).astype(np.uint8)
    pixels[:20, :20] = RANDOM.integers(0, 256, (20, 20, channels))
    return pixels


# ---- PNG by hand: what Pillow does not write ----


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def rows(samples, depth):
    """Rows as PNG has them, without filters; samples [rows, columns, channels] below 2^depth."""
    out = b""
    for row in samples:
        flat = row.reshape(-1)
        if depth == 16:
            packed = flat.astype(">u2").tobytes()
        elif depth == 8:
            packed = flat.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(sample), f"0{depth}b") for sample in flat)
            bits += "0" * (-len(bits) % 8)
            packed = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
        out += b"\0" + packed
    return out


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(samples, colour_type, depth, interlaced=False, extra=b""):
    height, width = samples.shape[:2]
    parts = [samples[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [samples]
    raw = b"".join(rows(part, depth) for part in parts if part.size)
    head = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def pngs():
    """Names and contents, and the samples of 16 bits where Pillow clips them when it makes them grey."""
    for name, kind, channels in (("grey", 0, 1), ("colour", 2, 3), ("grey-alpha", 4, 2), ("colour-alpha", 6, 4)):
        for depth in (8, 16):
            samples = RANDOM.integers(0, 1 << depth, (HEIGHT, WIDTH, channels))
            for interlaced in (False, True):
                yield f"{name}-{depth}{'-interlaced' * interlaced}", png(samples, kind, depth, interlaced), samples
    palette = chunk(b"PLTE", RANDOM.integers(0, 256, 3 * 256).astype(np.uint8).tobytes())
    for depth in (1, 2, 4, 8):
        samples = RANDOM.integers(0, 1 << depth, (HEIGHT, WIDTH, 1))
        few = chunk(b"PLTE", RANDOM.integers(0, 256, 3 << depth).astype(np.uint8).tobytes())
        yield f"palette-{depth}", png(samples, 3, depth, extra=few), None
        yield f"palette-{depth}-interlaced", png(samples, 3, depth, True, few), None
        if depth < 8:
            yield f"grey-{depth}", png(samples, 0, depth), None
            yield f"grey-{depth}-interlaced", png(samples, 0, depth, True), None
    indices = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 1))
    see_through = RANDOM.integers(0, 256, 256).astype(np.uint8).tobytes()
    yield "palette-alpha", png(indices, 3, 8, extra=palette + chunk(b"tRNS", see_through)), None
    grey, colour = picture(1), picture(3)
    yield "grey-key", png(grey, 0, 8, extra=chunk(b"tRNS", struct.pack(">H", int(grey[9, 9, 0])))), None
    yield "colour-key", png(colour, 2, 8, extra=chunk(b"tRNS", struct.pack(">3H", *map(int, colour[9, 9])))), None
    for name, gamma in (("dark", 45455), ("linear", 100000), ("odd", 200000)):
        yield f"grey-gamma-{name}", png(grey, 0, 8, extra=chunk(b"gAMA", struct.pack(">I", gamma))), None
        yield f"colour-gamma-{name}", png(colour, 2, 8, extra=chunk(b"gAMA", struct.pack(">I", gamma))), None
    yield "colour-srgb", png(colour, 2, 8, extra=chunk(b"sRGB", b"\0")), None
    yield "palette-gamma", png(indices, 3, 8, extra=chunk(b"gAMA", struct.pack(">I", 100000)) + palette), None


# ---- JPEG ----


def save(image, **options):
    out = io.BytesIO()
    image.save(out, "jpeg", **options)
    return out.getvalue()


def turbo(pixels, form, sampling, flags=0):
    """What Pillow does not write: by libjpeg-turbo itself. form: 0 of RGB, 11 of CMYK (which it stores as YCCK)."""
    name = ctypes.util.find_library("turbojpeg") or "libturbojpeg.so.0"
    library = ctypes.CDLL(name)
    library.tjInitCompress.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.tjInitCompress())
    data, size = ctypes.c_void_p(), ctypes.c_ulong()
    pixels = np.ascontiguousarray(pixels)
    failed = library.tjCompress2(handle, pixels.ctypes.data_as(ctypes.c_void_p), WIDTH, 0, HEIGHT, form, ctypes.byref(data),
                                 ctypes.byref(size), sampling, 90, flags)
    assert failed == 0, "libjpeg-turbo does not write this kind of JPEG"
    content = ctypes.string_at(data, size.value)
    library.tjFree(data)
    library.tjDestroy(handle)
    return content


SAMPLINGS = {"444": 0, "422": 1, "420": 2, "440": 4, "411": 5}


def jpegs():
    grey, colour = Image.fromarray(picture(1)[..., 0]), Image.fromarray(picture(3))
    inks = Image.fromarray(picture(4), "CMYK")
    exif = Image.Exif()
    exif[0x112] = 6  # the camera was turned
    for quality in (10, 75, 100):
        yield f"grey-{quality}", save(grey, quality=quality)
        yield f"inks-{quality}", save(inks, quality=quality)
        for sampling in (0, 1, 2):
            yield f"colour-{quality}-{sampling}", save(colour, quality=quality, subsampling=sampling)
            yield f"colour-{quality}-{sampling}-progressive", save(colour, quality=quality, subsampling=sampling, progressive=True)
    yield "grey-progressive", save(grey, progressive=True)
    yield "inks-progressive", save(inks, progressive=True)
    yield "colour-optimized", save(colour, optimize=True)
    yield "colour-restarts", save(colour, restart_marker_blocks=3)
    yield "colour-rgb", save(colour, keep_rgb=True, subsampling=0)
    yield "colour-turned", save(colour, exif=exif)
    yield "colour-profile", save(colour, icc_profile=bytes(5000))
    for name, sampling in SAMPLINGS.items():
        yield f"turbo-{name}", turbo(picture(3), 0, sampling)
        yield f"turbo-{name}-progressive", turbo(picture(3), 0, sampling, flags=16384)
        yield f"inks-turbo-{name}", turbo(picture(4), 11, sampling)
    os.environ["TJ_ARITHMETIC"] = "1"
    yield "colour-arithmetic", turbo(picture(3), 0, 2)
    del os.environ["TJ_ARITHMETIC"]


# ---- both ----


def convert(folder, channels, **environment):
    """What the program reads: [files, HEIGHT, WIDTH, channels], in the order of the names."""
    os.environ.update(environment)
    out = place(f"{folder}-{channels}")
    trireme("data", "convert", f"{{folder: {{path: {folder}, channels: {channels}, depth: 8}}}}", out, "--format", "idx")
    for name in environment:
        del os.environ[name]
    with open(f"{out}-images-idx3-ubyte" if channels == 1 else f"{out}-images-idx4-ubyte", "rb") as file:
        head, pixels = file.read(16 if channels == 1 else 20), file.read()
    assert struct.unpack(">2I", head[8:16]) == (HEIGHT, WIDTH)
    return np.frombuffer(pixels, np.uint8).reshape(-1, HEIGHT, WIDTH, channels)


def expected(content, channels, samples):
    """What Pillow reads. Grey of 16 bits it cuts off at 255; there the high byte is asked for, as it takes it of colours."""
    image = Image.open(io.BytesIO(content))
    if image.mode.startswith("I"):
        high = (samples >> 8).astype(np.uint8)
        assert (np.asarray(image) >> 8 == high[..., 0]).all()
        return high if channels == 1 else high.repeat(3, -1)
    return np.asarray(image.convert("L" if channels == 1 else "RGB")).reshape(HEIGHT, WIDTH, channels)


def judge(folder, ending, cases):
    os.makedirs(place(f"{folder}/all"))
    cases.sort(key=lambda case: (case[0] + ending).encode())  # as the program takes them
    for name, content, _ in cases:
        with open(place(f"{folder}/all/{name}{ending}"), "wb") as file:
            file.write(content)
    for channels in (1, 3):
        ours = convert(folder, channels)
        assert len(ours) == len(cases)
        for mine, (name, content, samples) in zip(ours, cases):
            off = np.abs(mine.astype(int) - expected(content, channels, samples).astype(int)).max()
            assert off == 0, f"{name}{ending} with {channels} channels is up to {off} levels off Pillow"
        print(f"{len(cases)} kinds of {ending[1:]} with {channels} channels: as Pillow {Image.__version__} reads them")
        # Whatever libjpeg-turbo makes of the processor.
        for variant in ("JSIMD_FORCENONE", "JSIMD_FORCESSE2", "JSIMD_FORCEAVX2") if ending == ".jpg" else ():
            assert (convert(folder, channels, **{variant: "1"}) == ours).all(), variant


judge("png", ".png", list(pngs()))
judge("jpeg", ".jpg", [(name, content, None) for name, content in jpegs()])
