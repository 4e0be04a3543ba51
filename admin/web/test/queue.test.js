// The queue of uploads: order, bounds, failures, sending again, cancelling; its totals and estimate.
import assert from 'node:assert/strict';
import test from 'node:test';
import { remaining, totals, uploadQueue } from '../lib/queue.js';
import { listed } from '../pages/uploadlist.js';

/** A queue whose transfers are ended by the test: end(name, error). */
function start(count) {
	const running = new Map();
	const idle = [];
	const queue = uploadQueue((entry, signal) =>
		new Promise((resolve, reject) => {
			running.set(entry.upload.name, { resolve, reject });
			signal.addEventListener('abort', () => reject(new Error('Cancelled.')));
		}), () => {}, (ended) => idle.push(ended.map(({ upload, state }) => `${upload.name} ${state}`)));
	queue.add(Array.from({ length: count }, (_, i) => ({
		upload: { file: new File(['12345'], `${i}`), name: `${i}`, folder: '' },
		subFolder: '',
		refused: '',
	})));
	const end = async (name, error) => {
		const { resolve, reject } = running.get(name);
		running.delete(name);
		if (error) reject(error);
		else resolve(`stored/${name}`);
		await new Promise((done) => setTimeout(done));
	};
	const states = () => queue.entries().map(({ state }) => state[0]).join('');
	return { queue, end, states, idle, running };
}

test('three run at a time, in their order', async () => {
	const { end, states, idle } = start(5);
	assert.equal(states(), 'rrrww');
	await end('1');
	assert.equal(states(), 'rsrrw');
	for (const name of ['0', '2', '3']) await end(name);
	assert.deepEqual(idle, []);
	await end('4', new Error('refused'));
	assert.equal(states(), 'ssssf');
	assert.deepEqual(idle, [['1 stored', '0 stored', '2 stored', '3 stored', '4 failed']]);
});

test('a file is sent again with the same attempt', async () => {
	const { queue, end, states, idle } = start(1);
	const [entry] = queue.entries();
	const { key } = entry.attempt;
	await end('0', new Error('no'));
	queue.again([entry]);
	assert.equal(states(), 'r');
	assert.equal(entry.attempt.key, key);
	await end('0');
	assert.deepEqual(idle, [['0 failed'], ['0 stored']]);
});

test('without a server or a session the others wait', async () => {
	const { queue, end, states, idle } = start(6);
	await end('0', Object.assign(new Error('out'), { loggedOut: true }));
	await end('1');
	await end('2', Object.assign(new Error('away'), { unreachable: true }));
	assert.equal(states(), 'fsfwww');
	assert.equal(queue.stopped().message, 'away');
	assert.equal(idle.length, 1);
	queue.again(queue.entries().filter(({ state }) => state === 'failed'));
	assert.equal(states(), 'rsrrww');
	assert.equal(queue.stopped(), null);
});

test('all are cancelled', async () => {
	const { queue, states, idle } = start(5);
	queue.cancel();
	await new Promise((done) => setTimeout(done));
	assert.equal(states(), 'ccccc');
	assert.equal(idle.length, 1);
	queue.clear();
	assert.deepEqual(queue.entries(), []);
});

test('the end waits for folders that are still read', async () => {
	const { queue, end, idle } = start(1);
	const addition = queue.adding();
	queue.add([{ upload: { name: 'x', folder: '' }, subFolder: '', refused: 'no' }]);
	await end('0');
	assert.deepEqual(idle, []);
	addition.done();
	assert.deepEqual(idle, [['x refused', '0 stored']]);
	const other = queue.adding();
	queue.cancel();
	assert.ok(other.cancelled && !addition.cancelled);
});

test('totals count what is or shall be stored', () => {
	const entry = (state, sent = 0) => ({ state, size: 10, sent });
	assert.deepEqual(
		totals([entry('stored'), entry('running', 4), entry('running', 12), entry('waiting', 9),
			entry('failed', 9)]),
		{ waiting: 1, running: 2, stored: 1, failed: 1, cancelled: 0, refused: 0, bytes: 40, sent: 24 },
	);
});

test('few rows of many files', () => {
	const entries = Array.from({ length: 10_000 }, (_, i) => ({ state: i < 5000 ? 'stored' : 'waiting', i }));
	const rows = listed(entries);
	assert.equal(rows.length, 23);
	assert.deepEqual([rows[0].i, rows.at(-1).i], [4997, 5019]);
	assert.equal(listed(entries.slice(4900, 4960)).length, 20);
});

test('the remaining time', () => {
	const samples = [];
	const at = (seconds, bytes, files, left) =>
		remaining(samples, { time: seconds * 1000, bytes, files }, left);
	assert.ok(Number.isNaN(at(0, 0, 0, { bytes: 1000, files: 10 })));
	assert.ok(Number.isNaN(at(4, 40, 1, { bytes: 960, files: 9 })), 'too early');
	assert.equal(at(10, 100, 5, { bytes: 900, files: 5 }), 90_000, 'by the bytes');
	assert.equal(at(10, 100, 1, { bytes: 10, files: 9 }), 90_000, 'by the files');
	assert.equal(at(60, 110, 5, { bytes: 0, files: 5 }), NaN, 'old samples are forgotten');
});
