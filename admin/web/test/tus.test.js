// Resumable uploads: cuts, refusals, a server without them.
import assert from 'node:assert/strict';
import test from 'node:test';
import { metadataOf, uploadResumable } from '../lib/tus.js';
import { serve } from './xhr.js';

const file = new Blob(['0123456789']);
const upload = (signal = new AbortController().signal, at = { address: '' }) =>
	uploadResumable('api/upload/file/resumable', file, { filename: 'a.txt' }, () => {}, signal, at,
		async () => {});

/** A server that stores pieces; cuts are the numbers of bytes after which a PATCH breaks. */
function store(cuts, final = { status: 204 }) {
	let bytes = '';
	return async (method, headers, body) => {
		if (method === 'POST') return { status: 201, headers: { Location: '/x' } };
		if (method === 'HEAD') return { status: 200, headers: { 'Upload-Offset': String(bytes.length) } };
		if (method === 'GET') return { status: 200, text: bytes };
		if (headers['Upload-Offset'] !== String(bytes.length)) return { status: 409 };
		const cut = cuts.shift();
		bytes += (await body.text()).slice(0, cut);
		return cut === undefined ? final : null;
	};
}

test('an upload continues after cuts', async () => {
	const asked = serve(store([3, 0, 4]));
	assert.equal((await upload()).text, '0123456789');
	assert.deepEqual(asked, ['POST', 'PATCH 0', 'HEAD', 'PATCH 3', 'HEAD', 'PATCH 3', 'HEAD', 'PATCH 7',
		'GET']);
});

test('an upload whose last answer is lost is not sent again', async () => {
	const asked = serve(store([10]));
	assert.equal((await upload()).text, '0123456789');
	assert.deepEqual(asked, ['POST', 'PATCH 0', 'HEAD', 'GET']);
});

test('an offset that is locked is asked for again', async () => {
	const answer = store([10]);
	let locked = 2;
	const asked = serve((...request) =>
		request[0] === 'HEAD' && locked-- > 0 ? { status: 423 } : answer(...request)
	);
	assert.equal((await upload()).text, '0123456789');
	assert.deepEqual(asked, ['POST', 'PATCH 0', 'HEAD', 'HEAD', 'HEAD', 'GET']);
});

test('a connection that stays broken is an error', async () => {
	const asked = serve(store(Array(100).fill(0)));
	await assert.rejects(upload(), /broke/);
	assert.equal(asked.filter((method) => method.startsWith('PATCH')).length, 9);
});

test('an upload that was given up is continued later', async () => {
	const at = { address: '' };
	const cuts = [4, ...Array(9).fill(0)];
	const asked = serve(store(cuts));
	await assert.rejects(upload(undefined, at), /broke/);
	assert.equal(at.address, '/x');
	asked.length = 0;
	assert.equal((await upload(undefined, at)).text, '0123456789');
	assert.deepEqual(asked, ['HEAD', 'PATCH 4', 'GET']);
});

test('refusals are returned', async () => {
	serve(() => ({ status: 404 }));
	assert.equal(await upload(), null);
	serve(() => ({ status: 415, text: 'no' }));
	assert.equal((await upload()).text, 'no');
	serve(store([], { status: 415, text: 'no' }));
	assert.equal((await upload()).status, 415);
});

test('a cancelled upload is removed', async () => {
	const controller = new AbortController();
	const asked = serve((method) => {
		if (method === 'PATCH') controller.abort();
		return { status: 201, headers: { Location: '/x' } };
	});
	const at = { address: '' };
	await assert.rejects(upload(controller.signal, at), /Cancelled/);
	assert.equal(at.address, '');
	assert.deepEqual(asked, ['POST', 'PATCH 0', 'DELETE']);
});

test('metadata is in Base64', () => {
	assert.equal(metadataOf({ filename: 'ž.txt', alias: 'a', sub_folder: '' }),
		'filename xb4udHh0,alias YQ==');
});
