// @ts-check
// Brings back what is in the trash: after a deletion by Undo, and from the lists of the trash.
import { get } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { notDone, plural, span } from '../lib/format.js';
import { nameOf } from '../lib/links.js';
import { failureList, withProgress } from '../lib/progress.js';
import { inSets } from '../lib/sets.js';
import { may } from '../lib/state.js';
import { announce, ask, explained } from '../lib/ui.js';
import { offerUndo } from '../lib/undo.js';

/** @type {{key: 'id', success: string, failure: string}} */
const restoring = { key: 'id', success: 'restored', failure: 'It was not restored.' };
const perPage = 200;

/** Whether this user may bring items of an alias back. @param {Alias} alias */
export const hasTrash = (alias) => Boolean(alias.trash) && may('restore');

/**
 * Whether this user may remove what is in the trash of an alias for good.
 * @param {Alias} alias
 */
export const mayPurge = (alias) => may('purge') && !alias.trash_locked;

/**
 * For how long some items can be had back after their deletion.
 * @param {Alias} alias
 * @param {number} count
 */
export function backFor(alias, count) {
	if (!alias.trash) return 'This cannot be undone.';
	const what = count === 1 ? 'it' : 'them';
	return may('restore') ? `You can have ${what} back for ${span(alias.trash)}.`
		: `The administrator can bring ${what} back for ${span(alias.trash)}.`;
}

/**
 * Announces a deletion, with Undo if the trash has some of the items.
 * @param {Alias} alias
 * @param {string} text
 * @param {KeptName[]} kept
 */
export function told(alias, text, kept) {
	if (kept.length === 0 || !may('restore')) announce(text);
	else offerUndo(text, () => undo(alias, kept));
}

/**
 * Announces the deletion of a folder, which began at a time of the server, with Undo.
 * @param {Alias} alias
 * @param {string} text
 * @param {{path: string, began: string}} folder
 */
export function toldOfFolder(alias, text, { path, began }) {
	if (!began || !hasTrash(alias)) {
		announce(text);
		return;
	}
	offerUndo(text, async function act() {
		announce('Looking in the trash …');
		try {
			const kept = await removedSince(began, (cursor) =>
				get(['items', alias.kind, alias.name], { trash: '1', folder: path, limit: perPage, cursor }));
			await undo(alias, kept);
		} catch (error) {
			if (await failedWith('Nothing was brought back', h('p', null, explained(error)), 'Try again'))
				await act();
		}
	});
}

/**
 * Shows what was not brought back. Returns whether the user wants to try it another way.
 * @param {string} title
 * @param {Child} content
 * @param {string | false} way
 */
const failedWith = (title, content, way) =>
	ask(title, content, [{ text: 'Close', value: '', first: true }, ...way
		? [{ text: way, value: 'yes' }] : []]);

/**
 * Brings deleted items back. The list that is shown by now is loaded anew.
 * @param {Alias} alias
 * @param {KeptName[]} kept
 */
async function undo(alias, kept) {
	await bringBack(alias, kept);
	dispatchEvent(new Event('undone'));
}

/**
 * The entries of the trash that were removed since a time, of each name the first one: the others are of
 * later removals by other users. page returns a page of the trash, the newest entries first.
 * @param {string} began
 * @param {(cursor: string) => Promise<TrashPage>} page
 */
export async function removedSince(began, page) {
	/** @type {Map<string, Kept>} */
	const first = new Map();
	let cursor = '';
	do {
		const { result, next = '' } = await page(cursor);
		for (const entry of result) {
			if (digits(entry.removed) < digits(began)) return [...first.values()];
			first.set(entry.filename, entry);
		}
		cursor = next;
	} while (cursor);
	return [...first.values()];
}

/**
 * A time of the server in a form that can be compared: its fraction may have any length.
 * @param {string} time in UTC
 */
function digits(time) {
	const [seconds, fraction = ''] = time.replace('Z', '').split('.');
	return `${seconds}.${fraction.padEnd(9, '0')}`;
}

/**
 * The entries without those of which there is a later one of the same name. An ID begins with the time
 * of removal.
 * @template {KeptName} K
 * @param {K[]} entries
 */
export function lastVersions(entries) {
	const ordered = [...entries].sort((a, b) => (a.id < b.id ? -1 : 1));
	return [...new Map(ordered.map((entry) => [entry.filename, entry])).values()];
}

/**
 * Brings entries back and shows which failed, with what the alias allows for a name that is taken, or to
 * try again after an error. Of several entries of one name only the last version comes back. Returns
 * those that are back, each with its new filename.
 * @param {Alias} alias
 * @param {KeptName[]} entries
 * @param {boolean} [anyway] whether taken names are no obstacle
 * @returns {Promise<Restored[]>}
 */
export async function bringBack(alias, entries, anyway = false) {
	const last = lastVersions(entries);
	const total = plural(last.length, 'item');
	/** @type {[string, string][]} */
	const fields = [['action', 'restore']];
	if (anyway) fields.push([alias.overwrite ? 'replace' : 'rename', '1']);
	/** @type {Restored[]} */
	const back = [];
	const { failed, error, stopped } = await withProgress(`Bringing back ${total}`, last.length,
		async (progress) => {
			for await (const restored of inSets(alias, fields, last, restoring, progress))
				back.push(...restored.map(({ id, filename }) => ({ id, filename })));
		});
	if (back.length > 0 && failed.length === 0 && !error) announce(backText(entries, back));
	if (failed.length === 0 && !error) return back;
	const restored = new Set(back.map(({ id }) => id));
	const rest = last.filter(({ id }) => !restored.has(id));
	const isTaken = !anyway && !stopped && failed.some(({ message }) => message.includes('this name'));
	const other = error ? 'Try again' : isTaken && otherWay(alias, rest.length);
	const choice = await failedWith(notDone(rest.length, last.length, 'restored'), [
		back.length > 0 && h('p', null, backText(entries, back)),
		error && h('p', { class: 'trouble' }, explained(error)),
		failureList(failed),
	], other);
	return choice ? [...back, ...await bringBack(alias, rest, anyway || !error)] : back;
}

/**
 * What can be done with items whose names are taken.
 * @param {Alias} alias
 * @param {number} count
 */
const otherWay = ({ overwrite }, count) =>
	overwrite ? `Replace the present ${count === 1 ? 'one' : 'ones'}`
		: `Restore under ${count === 1 ? 'another name' : 'other names'}`;

/**
 * @param {KeptName[]} entries
 * @param {Restored[]} back
 */
function backText(entries, back) {
	const several = lastVersions(entries).length < entries.length;
	if (back.length !== 1)
		return `${plural(back.length, 'item')} are back${several ? ', each in its last version' : ''}.`;
	const [{ id, filename }] = back;
	const old = entries.find((entry) => entry.id === id)?.filename ?? filename;
	const as = old === filename ? '' : ` as ${nameOf(filename)}`;
	return `${nameOf(old)} is back${as}${several ? ', in its last version' : ''}.`;
}
