// Stores, reads, lists, copies and deletes files with the S3 packages of Strapi and Directus, as the page configures them.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

const [folder, endpoint, page] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const large = Buffer.from(Array.from({ length: 17 << 20 }, (_, i) => (i * 7) ^ (i >> 11)));

const variables = { ...process.env, S3_SECRET: process.env.AWS_SECRET_ACCESS_KEY };
const { upload } = require(path.resolve(page))({ env: (name) => variables[name] });
const strapi = require(`@strapi/provider-upload-${upload.config.provider}`).init(upload.config.providerOptions);
const [one, two] = [{ hash: 'one_1', ext: '.bin', stream: Readable.from([large]) }, { hash: 'two_2', ext: '.txt', buffer: Buffer.from('two') }];
await strapi.uploadStream(one);
await strapi.upload(two);
assert.equal(two.url, 'https://example.com/static/file/docs/two_2.txt');
await strapi.delete(one);
await strapi.delete(two);

const { DriverS3 } = await import(require.resolve('@directus/storage-driver-s3'));
const directus = new DriverS3({ bucket: 'file-docs', key: 'shop', secret: process.env.AWS_SECRET_ACCESS_KEY, endpoint, region: 'us-east-1', forcePathStyle: true, root: 'directus' });
const read = async (name, options) => buffer(await directus.read(name, options));
await directus.write('one.bin', Readable.from([large]), 'application/octet-stream');
assert.ok(large.equals(await read('one.bin')));
assert.deepEqual(await read('one.bin', { range: { start: 1, end: 3 } }), large.subarray(1, 4));
await directus.copy('one.bin', 'two.bin');
await directus.move('two.bin', 'three.bin');
assert.deepEqual([await directus.exists('two.bin'), (await directus.stat('three.bin')).size], [false, large.length]);
const begun = await directus.createChunkedUpload('parts.bin', { size: large.length, metadata: {}, id: 'one' });
for (begun.offset = 0; begun.offset < large.length;) {
	const chunk = large.subarray(begun.offset, begun.offset + (8 << 20));
	begun.offset = await directus.writeChunk('parts.bin', Readable.from([chunk]), begun.offset, begun);
}
await directus.finishChunkedUpload('parts.bin', begun);
assert.ok(large.equals(await read('parts.bin')));
const names = [];
for await (const name of directus.list('')) names.push(name);
assert.equal(names.length, 3);
for (const name of ['one.bin', 'three.bin', 'parts.bin']) await directus.delete(name);
