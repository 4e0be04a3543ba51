// The selection of items.
import assert from 'node:assert/strict';
import test from 'node:test';
import { maxSelected, newSelection } from '../pages/selection.js';

const items = (count) => Array.from({ length: count }, (_, i) => ({ filename: `${i}.jpg` }));

test('a selection reports what changes', () => {
	const selection = newSelection();
	const changes = [];
	selection.onChange((filenames) => changes.push(filenames));
	const [a, b] = items(2);
	selection.set([a, b], true);
	selection.set([a, b], true);
	selection.set([b], false);
	selection.clear();
	selection.clear();
	assert.deepEqual(changes, [['0.jpg', '1.jpg'], ['1.jpg'], ['0.jpg']]);
});

test('a selection is bounded', () => {
	const selection = newSelection();
	selection.set(items(maxSelected + 5), true);
	assert.equal(selection.items.size, maxSelected);
	selection.clear();
	assert.equal(selection.items.size, 0);
});
