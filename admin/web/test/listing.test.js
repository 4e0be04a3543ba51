// The sentence about a list.
import assert from 'node:assert/strict';
import test from 'node:test';
import { summary } from '../pages/listing.js';

const state = (folders, items, next, unseen) => ({
	folders: Array(folders).fill('f'),
	items: Array(items).fill({}),
	next,
	unseen,
});

test('a list says how many items there are if the server has counted them', () => {
	for (const [list, search, want] of [
		[state(0, 0, '', null), '', ''],
		[state(1, 2, '', null), '', '1 folder, 2 items.'],
		[state(1, 2, 'x', null), '', '1 folder, 2 items shown, there are more.'],
		[state(1, 2, 'x', 1998), '', '1 folder, 2 of 2,000 items shown.'],
		[state(1, 2, '', 0), '', '1 folder, 2 items.'],
		[state(9, 0, 'x', 20), '', '9 folders shown, there are more.'],
		[state(0, 100, 'x', null), 'a', 'Found 100 items so far.'],
		[state(0, 100, 'x', 80), 'a', 'Found 180 items, 100 shown.'],
		[state(0, 180, '', 0), 'a', 'Found 180 items.'],
		[state(0, 0, 'x', 0), 'a', 'Found 0 items so far.'],
	]) assert.equal(summary(list, search), want);
});
