"""Writes vectors.json: small parquet files by pyarrow (26.0.1), in base64. python3 vectors.py > vectors.json"""

import base64
import io
import json
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

texts = ["amber", "birch", "amber"]


def file(column, name="text", **options):
    options = {"use_dictionary": False, "compression": "none", **options}
    content = io.BytesIO()
    pq.write_table(pa.table({name: column}), content, store_schema=False, write_statistics=False, **options)
    return base64.b64encode(content.getvalue()).decode()


class Keys(pe.KmsClient):
    def __init__(self, _):
        super().__init__()

    def wrap_key(self, key, _):
        return base64.b64encode(key).decode()

    def unwrap_key(self, key, _):
        return base64.b64decode(key)


def encrypted(plaintext_footer):
    configuration = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["text"]}, plaintext_footer=plaintext_footer
    )
    factory = pe.CryptoFactory(lambda _: Keys(_))
    return factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)


numbers = pa.array(
    [
        [
            {
                "n": 3,
                "big": 9007199254740993,
                "most": 18446744073709551615,
                "x": 22.0,
                "of": [1.0, 0.5],
                "by": [("a", 7)],
            }
        ],
        [{"n": -1, "big": None, "most": 0, "x": 1e20, "of": [], "by": []}],
    ],
    pa.list_(
        pa.struct(
            [
                ("n", pa.int32()),
                ("big", pa.int64()),
                ("most", pa.uint64()),
                ("x", pa.float64()),
                ("of", pa.list_(pa.float32())),
                ("by", pa.map_(pa.string(), pa.int16())),
            ]
        )
    ),
)

vectors = {
    **{name: file(texts, compression=name) for name in ["lz4", "zstd", "snappy", "gzip", "brotli"]},
    "dictionary": file(texts * 4, use_dictionary=True),
    "delta": file(texts, column_encoding={"text": "DELTA_BYTE_ARRAY"}),
    "secondPageVersion": file(texts, data_page_version="2.0", compression="zstd"),
    "largeString": file(pa.array(texts, pa.large_string())),
    "bytes": file(pa.array([text.encode() for text in texts])),
    "latin1": file(pa.array(["café".encode("latin1")])),
    "struct": file(pa.array([{"text": text} for text in texts]), name="doc"),
    "list": file(pa.array([[text] for text in texts])),
    "map": file(pa.array([[("a", text)] for text in texts], pa.map_(pa.string(), pa.string()))),
    "time": file(pa.array([datetime(2026, 1, 2)])),
    "fixedBytes": file(pa.array([b"amber"], pa.binary(5))),
    "null": file(pa.array(["amber", None])),
    "noGroups": file(pa.array([], pa.string())),
    "numbers": file(numbers, name="messages"),
    "numbersAsJson": json.dumps(numbers.to_pylist(maps_as_pydicts="strict")),
    "encryptedColumn": file(texts, encryption_properties=encrypted(True)),
    "encryptedFooter": file(texts, encryption_properties=encrypted(False)),
}
print(json.dumps(vectors, indent=2))
