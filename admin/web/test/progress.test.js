// Actions on many items.
import assert from 'node:assert/strict';
import test from 'node:test';
import { eachOf } from '../lib/progress.js';

test('an error ends the work after those that have begun', async () => {
	const ended = [];
	const work = async (n) => {
		await new Promise((done) => setImmediate(done));
		if (n === 1) throw new Error('storage down');
		await new Promise((done) => setImmediate(done));
		ended.push(n);
	};
	await assert.rejects(eachOf([0, 1, 2, 3, 4, 5, 6], 3, { stopped: () => false }, work), /storage down/);
	assert.deepEqual(ended, [0, 2]);
});
