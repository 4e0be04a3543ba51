// The configuration as a Caddyfile, and the hints beside it.
import assert from 'node:assert/strict';
import test from 'node:test';
import { notes, variables } from '../lib/caddyfile.js';

const answer = { text: '', command: 'curl -sS localhost:2119/x', variables: [], omitted: [] };

test('the way back needs one sentence', () => {
	assert.equal(notes(answer).length, 1);
	assert.deepEqual(variables(answer), []);
});

test('secrets are named, with their paths', () => {
	const one = { ...answer, variables: [{ name: 'MEDIA_X', path: 'accounts/x/password_hash' }] };
	assert.match(notes(one)[1], / Set 1 variable in .* `curl -sS localhost:2119\/x\/<path>` prints/);
	assert.deepEqual(variables(one), ['`MEDIA_X`: `accounts/x/password_hash`']);
});

test('the hints name missing values', () => {
	assert.match(notes({ ...answer, omitted: ['spool_folder', 'storages/a'] })[1],
		/`spool_folder`, `storages\/a`/);
});
