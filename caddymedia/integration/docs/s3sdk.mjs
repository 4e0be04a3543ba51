// Stores, lists, copies, reads and deletes objects with the SDK of a folder: Amazon's for JavaScript, version 3 or 2.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Readable } from 'node:stream';

const [folder, endpoint] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const settings = { endpoint, region: 'us-east-1' };
const Bucket = 'file-docs';
const { s3, upload, sign, bytes, knowsConditions } = folder.endsWith('v2') ? version2() : version3();

function version3() {
	const sdk = require('@aws-sdk/client-s3');
	const s3 = new sdk.S3({ ...settings, forcePathStyle: true });
	const { Upload } = require('@aws-sdk/lib-storage');
	const { getSignedUrl } = require('@aws-sdk/s3-request-presigner');
	return {
		s3,
		upload: (params) => new Upload({ client: s3, params: { Bucket, ...params } }).done(),
		sign: (name, params) => getSignedUrl(s3, new sdk[`${name}Command`]({ Bucket, ...params }), { expiresIn: 60 }),
		bytes: async ({ Body }) => Buffer.from(await Body.transformToByteArray()),
		knowsConditions: !require('@aws-sdk/client-s3/package.json').version.startsWith('3.400.'),
	};
}

function version2() {
	process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = '1';
	const sdk = require('aws-sdk');
	const s3 = new sdk.S3({ ...settings, s3ForcePathStyle: true, signatureVersion: 'v4' });
	return {
		s3: new Proxy({}, { get: (_, name) => (params) => s3[name](params).promise() }),
		upload: (params) => s3.upload({ Bucket, ...params }).promise(),
		sign: (name, params) => s3.getSignedUrlPromise(name[0].toLowerCase() + name.slice(1), { Bucket, ...params, Expires: 60 }),
		bytes: ({ Body }) => Body,
		knowsConditions: true,
	};
}

const call = (name, params) => s3[name]({ Bucket, ...params });
const get = async (Key, more) => bytes(await call('getObject', { Key, ...more }));
const refused = (code, promise) => assert.rejects(promise, (error) => [error.name, error.code, error.Code].includes(code) || assert.fail(error));
const small = Buffer.from('small, š');
const large = Buffer.from(Array.from({ length: 20 << 20 }, (_, i) => (i * 7) ^ (i >> 11)));

assert.ok((await s3.listBuckets({})).Buckets.some(({ Name }) => Name === Bucket));
await call('headBucket');
await refused('NoSuchBucket', s3.listObjectsV2({ Bucket: 'file-none' }));

// one object
const { ETag } = await call('putObject', { Key: 'sdk/a b/ü+.txt', Body: small, ContentType: 'text/plain', Metadata: { kept: 'no' } });
const head = await call('headObject', { Key: 'sdk/a b/ü+.txt' });
assert.deepEqual([head.ContentLength, head.ETag], [small.length, ETag]);
assert.deepEqual(await get('sdk/a b/ü+.txt'), small);
assert.deepEqual(await get('sdk/a b/ü+.txt', { Range: 'bytes=2-4' }), small.subarray(2, 5));
await refused('InvalidRange', get('sdk/a b/ü+.txt', { Range: 'bytes=100-' }));
await refused('NoSuchKey', get('sdk/none.txt'));
if (knowsConditions) await refused('PreconditionFailed', call('putObject', { Key: 'sdk/a b/ü+.txt', Body: 'x', IfNoneMatch: '*' }));
await call('putObject', { Key: 'sdk/empty.txt', Body: '' });
assert.equal((await get('sdk/empty.txt')).length, 0);

// lists of both versions
const keys = Array.from({ length: 12 }, (_, i) => `sdk/list/${String(i).padStart(2, '0')}/one.txt`);
await Promise.all(keys.map((Key) => call('putObject', { Key, Body: Key })));
for (const [list, next, cursor] of [['listObjects', 'NextMarker', 'Marker'], ['listObjectsV2', 'NextContinuationToken', 'ContinuationToken']]) {
	for (const [Delimiter, want] of [['', keys], ['/', keys.map((key) => key.slice(0, -7))]]) {
		const found = [];
		let page = {};
		do {
			page = await call(list, { Prefix: 'sdk/list/', Delimiter, MaxKeys: 5, [cursor]: page[next] ?? page.Contents?.at(-1).Key });
			found.push(...(page.Contents ?? []).map(({ Key }) => Key), ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix));
		} while (page.IsTruncated);
		assert.deepEqual(found, want, `${list} with the delimiter "${Delimiter}"`);
	}
}

// parts of a stream whose length is unknown
const chunks = Array.from({ length: 320 }, (_, i) => large.subarray(i << 16, (i + 1) << 16));
await upload({ Key: 'sdk/large.bin', Body: Readable.from(chunks, { objectMode: false }) });
assert.ok(large.equals(await get('sdk/large.bin')));
const aborted = { Key: 'sdk/aborted.bin', UploadId: (await call('createMultipartUpload', { Key: 'sdk/aborted.bin' })).UploadId };
await call('uploadPart', { ...aborted, PartNumber: 1, Body: large.subarray(0, 5 << 20) });
await call('uploadPartCopy', { ...aborted, PartNumber: 2, CopySource: `${Bucket}/sdk/large.bin`, CopySourceRange: 'bytes=0-99' });
assert.deepEqual((await call('listParts', aborted)).Parts.map(({ PartNumber, Size }) => [PartNumber, Size]), [[1, 5 << 20], [2, 100]]);
assert.deepEqual((await call('listMultipartUploads')).Uploads.map(({ Key }) => Key), ['sdk/aborted.bin']);
await call('abortMultipartUpload', aborted);
await refused('NoSuchUpload', call('listParts', aborted));

// addresses
const put = await fetch(await sign('PutObject', { Key: 'sdk/signed.txt' }), { method: 'PUT', body: small });
assert.equal(put.status, 200, await put.text());
const got = await fetch(await sign('GetObject', { Key: 'sdk/signed.txt', ResponseContentDisposition: 'attachment' }));
assert.deepEqual([Buffer.from(await got.arrayBuffer()), got.headers.get('Content-Disposition')], [small, 'attachment']);

// copies and deletions
await call('copyObject', { Key: 'sdk/copy.bin', CopySource: encodeURI(`${Bucket}/sdk/large.bin`) });
assert.ok(large.equals(await get('sdk/copy.bin')));
await call('deleteObject', { Key: 'sdk/copy.bin' });
await refused('NoSuchKey', get('sdk/copy.bin'));
const all = (await call('listObjectsV2', { Prefix: 'sdk/' })).Contents.map(({ Key }) => ({ Key }));
assert.equal((await call('deleteObjects', { Delete: { Objects: all } })).Deleted.length, all.length);
assert.equal((await call('listObjectsV2', { Prefix: 'sdk/' })).Contents?.length ?? 0, 0);
