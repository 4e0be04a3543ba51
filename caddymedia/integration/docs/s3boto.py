"""Stores, lists, copies, reads and deletes objects with boto3, and with Django's storage."""
import io
import sys
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

bucket = "file-docs"
s3 = boto3.client("s3", endpoint_url=sys.argv[1], config=Config(signature_version="s3v4"))
small, large = "small, š".encode(), bytes(range(256)) * (20 << 12)


def get(key, **more):
    return s3.get_object(Bucket=bucket, Key=key, **more)["Body"].read()


def refused(code, call, **params):
    try:
        call(**params)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
    else:
        raise AssertionError(f"{code} was expected")


class Stream(io.RawIOBase):
    """A stream that cannot be read twice, and whose length is unknown."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.data.readinto(buffer)


assert bucket in [b["Name"] for b in s3.list_buckets()["Buckets"]]
s3.head_bucket(Bucket=bucket)
refused("NoSuchBucket", s3.list_objects_v2, Bucket="file-none")

# one object
tag = s3.put_object(Bucket=bucket, Key="boto/a b/ü+.txt", Body=small, ContentType="text/plain", Metadata={"kept": "no"})["ETag"]
head = s3.head_object(Bucket=bucket, Key="boto/a b/ü+.txt")
assert (head["ContentLength"], head["ETag"]) == (len(small), tag), head
assert get("boto/a b/ü+.txt") == small
assert get("boto/a b/ü+.txt", Range="bytes=2-4") == small[2:5]
refused("InvalidRange", get, key="boto/a b/ü+.txt", Range="bytes=100-")
refused("NoSuchKey", get, key="boto/none.txt")
if "IfNoneMatch" in s3.meta.service_model.operation_model("PutObject").input_shape.members:
    refused("PreconditionFailed", s3.put_object, Bucket=bucket, Key="boto/a b/ü+.txt", Body=b"x", IfNoneMatch="*")
s3.put_object(Bucket=bucket, Key="boto/empty.txt", Body=b"")
assert get("boto/empty.txt") == b""
s3.put_object(Bucket=bucket, Key="boto/empty.txt", Body=b"x")  # after it on the same connection

# lists of both versions
keys = [f"boto/list/{i:02}/one.txt" for i in range(12)]
for key in keys:
    s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
for version in "list_objects", "list_objects_v2":
    pages = s3.get_paginator(version)
    found = pages.paginate(Bucket=bucket, Prefix="boto/list/", PaginationConfig={"PageSize": 5})
    assert [o["Key"] for page in found for o in page["Contents"]] == keys, version
    found = pages.paginate(Bucket=bucket, Prefix="boto/list/", Delimiter="/", PaginationConfig={"PageSize": 5})
    assert [p["Prefix"] for page in found for p in page["CommonPrefixes"]] == [key[:-7] for key in keys], version

# parts of a stream whose length is unknown
s3.upload_fileobj(Stream(large), bucket, "boto/large.bin")
assert get("boto/large.bin") == large
aborted = {"Bucket": bucket, "Key": "boto/aborted.bin"}
aborted["UploadId"] = s3.create_multipart_upload(**aborted)["UploadId"]
s3.upload_part(**aborted, PartNumber=1, Body=large[: 5 << 20])
s3.upload_part_copy(**aborted, PartNumber=2, CopySource=f"{bucket}/boto/large.bin", CopySourceRange="bytes=0-99")
assert [(p["PartNumber"], p["Size"]) for p in s3.list_parts(**aborted)["Parts"]] == [(1, 5 << 20), (2, 100)]
assert [u["Key"] for u in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]] == ["boto/aborted.bin"]
s3.abort_multipart_upload(**aborted)
refused("NoSuchUpload", s3.list_parts, **aborted)

# addresses
address = s3.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "boto/signed.txt"}, 60)
with urllib.request.urlopen(urllib.request.Request(address, small, method="PUT")) as put:
    assert put.status == 200
address = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "boto/signed.txt", "ResponseContentDisposition": "attachment"}, 60)
with urllib.request.urlopen(address) as got:
    assert (got.read(), got.headers["Content-Disposition"]) == (small, "attachment")

# copies and deletions
s3.copy({"Bucket": bucket, "Key": "boto/large.bin"}, bucket, "boto/copy.bin")
assert get("boto/copy.bin") == large
s3.delete_object(Bucket=bucket, Key="boto/copy.bin")
refused("NoSuchKey", get, key="boto/copy.bin")
boto3.resource("s3", endpoint_url=sys.argv[1]).Bucket(bucket).objects.filter(Prefix="boto/").delete()
assert s3.list_objects_v2(Bucket=bucket, Prefix="boto/")["KeyCount"] == 0
