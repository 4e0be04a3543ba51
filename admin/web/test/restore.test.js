// What Undo of a folder brings back, and for how long items can be had back.
import assert from 'node:assert/strict';
import test from 'node:test';
import { span } from '../lib/format.js';
import { state } from '../lib/state.js';
import { backFor, lastVersions, mayPurge, removedSince } from '../pages/restore.js';

/** A list of the trash in pages of two; asked has the cursors that were requested. */
function trash(...removed) {
	const asked = [];
	const entries = removed.map(([filename, time], i) => ({
		id: `${i}`,
		filename,
		removed: `2026-11-20T${time}Z`,
	}));
	const page = (cursor) => {
		asked.push(cursor);
		const from = Number(cursor);
		return Promise.resolve({
			result: entries.slice(from, from + 2),
			next: from + 2 < entries.length ? String(from + 2) : undefined,
		});
	};
	return { page, asked };
}

test('Undo of a folder restores what was removed since its deletion began', async () => {
	const began = '2026-11-20T12:00:00.1234Z';
	for (
		const [list, want] of [
			[[], []],
			[[['a', '12:00:00.1234'], ['b', '12:00:00.123399'], ['c', '11:00:00']], ['0']],
			[[['a', '12:00:01'], ['b', '12:00:00.2'], ['c', '12:00:00.123401'], ['d', '12:00:00']], ['0', '1',
				'2']],
			[[['a', '12:00:00.12339']], []],
			// Somebody else has stored and deleted the name again since.
			[[['a', '12:00:09'], ['b', '12:00:01'], ['a', '12:00:01']], ['2', '1']],
		]
	) {
		const found = await removedSince(began, trash(...list).page);
		assert.deepEqual(found.map(({ id }) => id), want);
	}
});

test('Undo of a folder reads no further page than it needs', async () => {
	const list = trash(['a', '12:00:02'], ['b', '12:00:02'], ['c', '12:00:02'], ['d', '11:00:00'], ['e',
		'11:00:00']);
	await removedSince('2026-11-20T12:00:00Z', list.page);
	assert.deepEqual(list.asked, ['', '2']);
});

test('the question before a deletion says for how long it can be undone', () => {
	state.session.may = ['delete', 'restore'];
	assert.equal(backFor({}, 1), 'This cannot be undone.');
	assert.equal(backFor({ trash: 14 * 86400 }, 1), 'You can have it back for 14 days.');
	assert.equal(backFor({ trash: 3600 }, 2), 'You can have them back for 1 hour.');
	state.session.may = ['delete'];
	assert.equal(backFor({ trash: 60 }, 1), 'The administrator can bring it back for 1 minute.');
});

test('nobody purges what is in a locked trash', () => {
	for (const [may, locked, want] of [['purge', false, true], ['purge', true, false], ['restore', false,
		false]])
	{
		state.session.may = [may];
		assert.equal(mayPurge({ trash: 60, trash_locked: locked }), want);
	}
});

test('a period is said in its largest whole unit', () => {
	for (const [seconds, want] of [[60, '1 minute'], [129600, '36 hours'], [1209600, '14 days'], [5400,
		'90 minutes']])
		assert.equal(span(seconds), want);
});

test('of several versions in a selection the last one is restored', () => {
	const entries = ['3-1-x/a', '1-1-x/a', '2-1-x/b', '4-1-x/a'].map((id) => ({ id, filename: id.slice(6) }));
	assert.deepEqual(lastVersions(entries).map(({ id }) => id).sort(), ['2-1-x/b', '4-1-x/a']);
});
