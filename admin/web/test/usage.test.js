// Which items of the last changes exist still.
import assert from 'node:assert/strict';
import test from 'node:test';
import { existing } from '../pages/usage.js';

const aliases = new Set(['img/content', 'file/content']);

/** @param {object} change */
const changed = (change) => ({
	action: 'store',
	kind: 'img',
	alias: 'content',
	filename: '',
	result: 'ok',
	...change,
});

test('the newest change of an item decides whether it exists', () => {
	for (
		const [changes, want] of [
			[[{ filename: 'a' }], { a: true }],
			[[{ action: 'delete', filename: 'a' }, { filename: 'a' }], { a: false }],
			[[{ action: 'replace', filename: 'a' }, { action: 'delete', filename: 'a' }], { a: true }],
			[[{ action: 'move', filename: 'a', to_alias: 'content', to: 'b' }, { filename: 'a' }], {
				a: false,
				b: true,
			}],
			[[{ action: 'copy', filename: 'a', to_alias: 'content', to: 'b' }, { filename: 'a' }], {
				a: true,
				b: true,
			}],
			[[{ action: 'delete', folder: 'f', number: 2 }, { filename: 'f/a' }, { filename: 'fa' }], {
				'f/a': false,
				fa: true,
			}],
			[[{ filename: 'f/a' }, { action: 'delete', folder: 'f', number: 2 }], { 'f/a': true }],
			[[{ action: 'delete', folder: 'f', number: 1, result: 'some are left' }, { filename: 'f/a' }], {
				'f/a': true,
			}],
			[[{ action: 'terminate', filename: 'a' }], { a: undefined }],
			[[{ alias: 'gone', filename: 'a' }], {}],
		]
	) {
		const found = existing(changes.map(changed), aliases);
		for (const [name, exists] of Object.entries(want)) {
			assert.equal(found.get(`img/content/${name}`), exists, `${name} of ${JSON.stringify(changes)}`);
		}
		assert.ok(![...found].some(([key, exists]) => exists && !key.startsWith('img/content/')));
	}
});
