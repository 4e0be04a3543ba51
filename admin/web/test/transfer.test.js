// The transfer of one file: repeated after cuts, its failures, what may be sent again.
import assert from 'node:assert/strict';
import test from 'node:test';
import { newAttempt, transfer } from '../lib/transfer.js';
import { serve } from './xhr.js';

const { setTimeout: later } = globalThis;
globalThis.setTimeout = (run) => later(run, 0); // the tests skip the pauses

const alias = { kind: 'file', name: 'docs' };
const stored = { status: 200, text: '{"success":true,"result":[{"filename":"x/a.txt"}]}' };
const refused = (status) => ({ status, text: '{"success":false,"errors":[{"message":"no"}]}' });

/** Sends a file to a server with these answers in turn; null breaks the connection. */
async function send(answers, { file = new File(['text'], 'a.txt'), session = 200 } = {}) {
	globalThis.fetch = async () => {
		if (session === 0) throw new TypeError('no server');
		return new Response('{}', { status: session });
	};
	const keys = [];
	const seen = [];
	serve((_, headers) => {
		keys.push(headers['Idempotency-Key']);
		return answers.shift();
	});
	const attempt = newAttempt();
	const { key } = attempt;
	const result = await transfer(alias, file, 'x', attempt, (sent, reason) => seen.push(reason ?? sent),
		new AbortController().signal)
		.catch((error) => error);
	return { result, keys: new Set(keys).size, sent: keys.length, renewed: attempt.key !== key, seen };
}

test('a lost answer is asked for again with the same key', async () => {
	const { result, keys, sent, seen } = await send([null, stored]);
	assert.equal(result, 'x/a.txt');
	assert.deepEqual([keys, sent, seen], [1, 2, ['The connection broke.']]);
});

test('a request that still runs is asked for again', async () => {
	const busy = { ...refused(409), headers: { 'Retry-After': '1' } };
	const { result, sent } = await send([busy, stored]);
	assert.deepEqual([result, sent], ['x/a.txt', 2]);
});

test('while the server asks to wait, its reason is shown', async () => {
	const later = (status, text) => ({ status, text, headers: { 'Retry-After': '1' } });
	const down = later(503, '{"success":false,"errors":[{"message":"the storage cannot be reached"}]}');
	const { result, seen } = await send([down, later(429, '{"error":"too many uploads."}'), later(503),
		stored]);
	assert.equal(result, 'x/a.txt');
	assert.deepEqual(seen, ['The server cannot store it now: the storage cannot be reached.',
		'The server asks to wait: too many uploads.', 'The server answered 503.']);
	const ended = await send(Array(4).fill(down));
	assert.deepEqual([ended.result.message, ended.sent], ['the storage cannot be reached', 4]);
});

test('a large file that the server cannot store fails with its reason', async () => {
	const file = new File([new Uint8Array(8 << 20)], 'a.bin');
	const down = { status: 503, text: '{"error":"the storage cannot be reached"}' };
	const { result, sent } = await send(Array(9).fill(down), { file });
	assert.deepEqual([result.message, sent], [
		'The server cannot store it now: the storage cannot be reached.',
		9,
	]);
});

test('a refusal is not repeated, and renews the attempt', async () => {
	const { result, sent, renewed } = await send([refused(415)]);
	assert.deepEqual([result.message, sent, renewed, result.unreachable], ['no', 1, true, false]);
});

test('after a failure of the server the attempt is kept', async () => {
	const { result, sent, renewed } = await send([refused(502)]);
	assert.deepEqual([result.message, sent, renewed], ['no', 1, false]);
});

test('a connection that stays broken', async () => {
	const broken = () => Array(4).fill(null);
	const reached = await send(broken());
	const away = await send(broken(), { session: 0 });
	const out = await send(broken(), { session: 401 });
	assert.match(reached.result.message, /connection broke/);
	assert.deepEqual([reached.sent, reached.renewed, reached.result.unreachable], [4, false, false]);
	assert.ok(away.result.unreachable);
	assert.ok(out.result.loggedOut);
});

test('the end of a session', async () => {
	const { result, renewed } = await send([{ status: 401 }]);
	assert.ok(result.loggedOut && !renewed);
});

test('a file that was removed', async () => {
	const file = Object.assign(new File(['text'], 'a.txt'), {
		slice: () => ({ arrayBuffer: () => Promise.reject(new Error('gone')) }),
	});
	const { result } = await send(Array(4).fill(null), { file });
	assert.match(result.message, /cannot be read/);
});
