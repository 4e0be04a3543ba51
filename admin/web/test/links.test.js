// Addresses of pages and items.
import assert from 'node:assert/strict';
import test from 'node:test';
import { commonFolder } from '../lib/links.js';

test('the common folder of stored files', () => {
	for (
		const [filenames, want] of [
			[['a.jpg'], ''],
			[['trip/a.jpg'], 'trip'],
			[['trip/one/a.jpg', 'trip/two/b.jpg'], 'trip'],
			[['trip/one/a.jpg', 'trip/b.jpg'], 'trip'],
			[['trip/b.jpg', 'trip/one/a.jpg'], 'trip'],
			[['trip/a.jpg', 'trips/b.jpg'], ''],
			[['a/b/c/1.jpg', 'a/b/c/2.jpg'], 'a/b/c'],
		]
	) {
		assert.equal(commonFolder(filenames), want);
	}
});
