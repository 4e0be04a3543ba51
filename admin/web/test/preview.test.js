// The encoding of texts, and the warning after an item was replaced.
import assert from 'node:assert/strict';
import test from 'node:test';
import { decoded } from '../pages/preview.js';
import { condition, seenFor } from '../pages/replace.js';

test('texts in the usual encodings', () => {
	for (
		const [bytes, want] of [
			[[0x47, 0xc3, 0xbc], 'Gü'],
			[[0x47, 0xfc], 'Gü'],
			[[0x63, 0x61, 0x66, 0xe9], 'café'], // which is the beginning of a character in UTF-8
			[[0xef, 0xbb, 0xbf, 0x61], 'a'],
			[[0x47, 0xfc, 0x72], 'Gür'],
			[[0xff, 0xfe, 0x61, 0x00, 0x11, 0x01], 'ađ'],
			[[0xfe, 0xff, 0x00, 0x61, 0x01, 0x11], 'ađ'],
			[[0x61, 0x00, 0x62], null],
		]
	) {
		assert.equal(decoded(Uint8Array.from(bytes), false), want, String(bytes));
	}
	for (
		const [bytes, want] of [
			[[0x47, 0xc3, 0xbc, 0xe2, 0x82], 'Gü'],
			[[0xff, 0xfe, 0x61, 0x00, 0x3d, 0xd8], 'a'],
			[[0xff, 0xfe, 0x61, 0x00, 0x11], 'a'],
		]
	) {
		assert.equal(decoded(Uint8Array.from(bytes), true), want, `${bytes}, cut`);
	}
});

test('how long others see the old item', () => {
	for (
		const [seconds, want] of [[1, '1 second'], [90, '90 seconds'], [60, '1 minute'], [3600, '1 hour'], [
			7000,
			'117 minutes',
		], [7200, '2 hours'], [9000, '3 hours'], [86400, '1 day']]
	) {
		assert.ok(seenFor(seconds).endsWith(`the old one for ${want}.`), seenFor(seconds));
	}
	assert.match(seenFor(0), /from now on/);
});

test('the entity tag of an item is the condition of a change', () => {
	const conditions = (alias) => ['"a"', 'W/"a"', '', undefined].map((etag) => condition(alias, { etag }));
	assert.deepEqual(conditions({}), ['"a"', '*', '*', '*']);
	assert.deepEqual(conditions({ dated: true }), ['"a"', 'W/"a"', '*', '*']);
});
