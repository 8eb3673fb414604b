"""Writes an array with every codec, order and type that zarr-python offers: write_stores.py FOLDER. Prints the names of the stores.

The values are [z, y, x] -> 1 + x / 4 + 8 y + 64 z, exact in half precision.
"""

import json
import pathlib
import sys
import warnings

import numcodecs
import numpy as np
import zarr
import zarr.codecs.numcodecs
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec, ZstdCodec

warnings.simplefilter("ignore")
folder = pathlib.Path(sys.argv[1])
z, y, x = np.meshgrid(*[np.arange(n) for n in (8, 6, 10)], indexing="ij")
values = 1 + x / 4 + 8.0 * y + 64.0 * z


def write(name, version, data_type="<f8", **options):
    # plain chunks, and chunks that do not divide the shape
    for chunks in ((4, 6, 5), (5, 4, 7)):
        group = zarr.open_group(folder / f"{name}_{chunks[0]}", mode="w", zarr_format=version)
        array = group.create_array("density", shape=values.shape, chunks=chunks, dtype=data_type, **options)
        array[:] = values.astype(data_type)
        print(f"{name}_{chunks[0]}")


for name in ("lz4", "lz4hc", "blosclz", "zstd", "zlib", "snappy"):
    if name in numcodecs.blosc.list_compressors():
        write(f"v2_blosc_{name}", 2, compressors=[numcodecs.Blosc(cname=name, shuffle=numcodecs.Blosc.BITSHUFFLE)])
    if name != "snappy":
        write(f"v3_blosc_{name}", 3, compressors=[BloscCodec(cname=name)])
write("v2_default", 2)
write("v2_big", 2, ">f8", compressors=[numcodecs.Blosc()])
write("v2_zlib", 2, compressors=[numcodecs.Zlib()])
write("v2_gzip", 2, compressors=[numcodecs.GZip()])
write("v2_zstd", 2, compressors=[numcodecs.Zstd()])
write("v2_none", 2, compressors=None)
write("v2_fortran", 2, order="F")
write("v2_single", 2, "<f4", order="F", compressors=[numcodecs.Zlib()])
write("v3_gzip", 3, compressors=[GzipCodec()])
write("v3_zstd", 3, compressors=[ZstdCodec()])
for name in ("Zlib", "GZip", "Zstd", "Blosc"):
    write(f"v3_numcodecs_{name}", 3, compressors=[getattr(zarr.codecs.numcodecs, name)()])
write("v3_numcodecs_level", 3, compressors=[zarr.codecs.numcodecs.Blosc(cname="zstd", shuffle=2)])
write("v3_big", 3, serializer=BytesCodec(endian="big"))
write("v3_none", 3, compressors=None)
write("v3_half", 3, "<f2")
write("v3_single", 3, "<f4")
for order in ((2, 1, 0), (1, 2, 0)):
    write(f"v3_transpose_{order[0]}", 3, filters=[TransposeCodec(order=order)])
group = zarr.open_group(folder / "v3_shards", mode="w", zarr_format=3)
array = group.create_array("density", shape=values.shape, chunks=(4, 3, 5), shards=(8, 6, 10), dtype="<f8")
array[:] = values
print("v3_shards")

# as the second version of zarr-python writes the order F
plain = folder / "v2_written_in_fortran_order" / "density"
plain.mkdir(parents=True)
(plain.parent / ".zgroup").write_text(json.dumps({"zarr_format": 2}))
document = {"zarr_format": 2, "shape": list(values.shape), "chunks": [4, 6, 5], "dtype": ">f4", "order": "F"}
document |= {"compressor": None, "filters": None, "fill_value": 0.0, "dimension_separator": "."}
(plain / ".zarray").write_text(json.dumps(document))
for k in range(2):
    for i in range(2):
        block = values[4 * k : 4 * k + 4, :, 5 * i : 5 * i + 5]
        (plain / f"{k}.0.{i}").write_bytes(block.astype(">f4").tobytes(order="F"))
print("v2_written_in_fortran_order")
