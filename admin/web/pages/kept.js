// @ts-check
// Entries of the trash: the dialog of one, and their removal for good.
import { get, post } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { moment, notDone, plural, size, typeName } from '../lib/format.js';
import { folderOf, nameOf, parts, previewOf } from '../lib/links.js';
import { failureList, showResult, withProgress } from '../lib/progress.js';
import { inSets, nameList } from '../lib/sets.js';
import { announce, confirm, explained, facts, failed, once, openDialog, waiting } from '../lib/ui.js';
import { preview } from './preview.js';
import { bringBack, mayPurge } from './restore.js';

/** @type {{key: 'id', success: string, failure: string}} */
const purging = { key: 'id', success: 'purged', failure: 'It was not deleted.' };

/**
 * Opens and returns the dialog of an entry.
 * @param {Alias} alias
 * @param {string} id
 * @param {Listing} list
 */
export function keptDialog(alias, id, list) {
	const filename = parts(id).slice(1).join('/');
	const body = h('div', { class: 'item' }, waiting());
	const dialog = openDialog(nameOf(filename) || 'Deleted item', body, { wide: true });

	async function load() {
		try {
			const entry = list.items().find((item) => item.id === id) ?? await find();
			fill(body, content(/** @type {Kept} */ (entry)));
		} catch (error) {
			fill(body, failed(error, load));
		}
	}

	async function find() {
		/** @type {TrashPage} */
		const { result } = await get(['items', alias.kind, alias.name], { trash: '1', filename, limit: 200 });
		const entry = result.find((each) => each.id === id);
		if (!entry) throw new Error('This is not in the trash any more.');
		return entry;
	}

	/** @param {Kept} entry */
	const content = (entry) => [
		preview(alias, entry, () => {}),
		facts({
			Folder: folderOf(filename) || 'top folder',
			Size: size(entry.size),
			Type: typeName(entry.content_type),
			Stored: moment(entry.stored),
			Deleted: moment(entry.removed),
			'Gone for good': moment(entry.expires_at),
		}, 'facts inline'),
		h('div', { class: 'actions' },
			button('Restore', () => restoreEntries(alias, [entry], list), 'primary'),
			h('a', { class: 'button', href: previewOf(alias, entry), download: nameOf(filename) },
				'Download'),
			mayPurge(alias) && button('Delete for good', () => purge(alias, [entry], list), 'danger')),
	];

	/**
	 * A button that closes the dialog when its work is done.
	 * @param {string} text
	 * @param {() => Promise<boolean>} work
	 * @param {string} look
	 */
	const button = (text, work, look) =>
		h('button', {
			type: 'button',
			class: look,
			onclick: (event) =>
				once(event.currentTarget, async () => {
					if (await work()) dialog.close('');
				}),
		}, text);
	load();
	return dialog;
}

/**
 * Brings entries of a list back, each name once. Returns whether any is back.
 * @param {Alias} alias
 * @param {KeptName[]} entries
 * @param {Listing} list
 */
export async function restoreEntries(alias, entries, list) {
	const back = new Set((await bringBack(alias, entries)).map(({ id }) => id));
	const names = new Set(entries.filter(({ id }) => back.has(id)).map(({ filename }) => filename));
	const done = entries.filter(({ filename }) => names.has(filename)); // earlier versions too
	list.remove(...done.map(({ id }) => id)); // the trash has them until their time
	list.regainFocus();
	return back.size > 0;
}

/**
 * Asks, and removes entries of a list for good. Returns whether any is removed.
 * @param {Alias} alias
 * @param {KeptName[]} entries
 * @param {Listing} list
 */
export async function purge(alias, entries, list) {
	const total = plural(entries.length, 'item');
	const what = entries.length === 1 ? `“${nameOf(entries[0].filename)}”` : total;
	const question = [
		nameList(entries),
		h('p', null, `Nobody can have ${entries.length === 1 ? 'it' : 'them'} back.`),
	];
	if (!await confirm(`Delete ${what} for good?`, question, 'Delete for good')) return false;
	/** @type {string[]} */
	const gone = [];
	const { done, failed: failures, error } = await withProgress(`Deleting ${total} for good`, entries.length,
		async (progress) => {
			for await (const purged of inSets(alias, [['action', 'purge']], entries, purging, progress))
				gone.push(...purged.map(({ id }) => id));
		});
	list.remove(...gone);
	const text = `${plural(done, 'item')} deleted for good.`;
	if (failures.length > 0 || error) {
		await showResult(notDone(entries.length - done, entries.length, 'deleted'),
			done > 0 && h('p', null, text), error && h('p', { class: 'trouble' }, explained(error)),
			failureList(failures));
	} else announce(text);
	list.regainFocus();
	return gone.length > 0;
}

/**
 * Asks, and removes all that is in the trash of an alias.
 * @param {Alias} alias
 * @param {Listing} list
 */
export async function emptyTrash(alias, list) {
	const question = h('p', null,
		`All deleted items of “${alias.name}” are gone then, also those that a search`,
		' does not show. Nobody can have them back.');
	if (!await confirm('Empty the trash?', question, 'Empty the trash')) return;
	let left = true;
	const { done, error, stopped } = await withProgress('Emptying the trash', 0, async (progress) => {
		while (left && !progress.stopped()) {
			const { purged = 0, more = false } = await post(['items', alias.kind, alias.name], [['action',
				'purge'], ['everything', 'yes']]);
			progress.done(purged);
			left = more;
			if (more && purged === 0) throw new Error('Some items could not be deleted. Try again later.');
		}
	});
	const text = `${plural(done, 'item')} deleted for good.`;
	if (left || error) {
		await showResult('The trash is not empty', h('p', null, text, stopped && ' You have stopped it.'),
			error && h('p', { class: 'trouble' }, explained(error)));
	} else announce(`The trash is empty. ${text}`);
	await list.load();
	list.regainFocus();
}
