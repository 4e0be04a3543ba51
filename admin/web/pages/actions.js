// @ts-check
// The actions on the selected items: delete, move, copy addresses, download.
import { get, parse, route } from '../lib/api.js';
import { h, newId } from '../lib/dom.js';
import { notDone, plural, size } from '../lib/format.js';
import { absolute, nameOf, parts } from '../lib/links.js';
import { eachOf, failureList, showResult, withProgress } from '../lib/progress.js';
import { inSets, nameList } from '../lib/sets.js';
import { may } from '../lib/state.js';
import { announce, ask, busyWhile, confirm, copyField, explained, once, showError } from '../lib/ui.js';
import { wideOnly } from './bar.js';
import { moveItems } from './move.js';
import { backFor, told } from './restore.js';

const perRequest = 1000; // items that one request downloads
const signedAtMost = 50; // each needs a request
/** @type {{key: 'filename', success: string, failure: string}} */
const deletion = { key: 'filename', success: 'deleted', failure: 'It was not deleted.' };

/**
 * The actions of the bar, and of the key Delete.
 * @param {Scope} scope
 * @param {Alias[]} aliases
 * @param {Listing} list
 * @returns {{actions: BarAction[], remove: ((items: Item[]) => void) | false}}
 */
export function itemActions(scope, aliases, list) {
	const { alias } = scope;
	/** @type {(items: Item[]) => any} */
	const remove = (items) => deleteItems(alias, items, list);
	/** @type {(BarAction | false)[]} */
	const actions = [
		may('delete') && { name: 'trash', text: 'Delete', act: remove, look: 'quiet-danger' },
		may('move')
		&& { name: 'move', text: 'Move', act: (items) => moveItems(scope, aliases, items, list) },
		{
			name: 'copy',
			text: ['Copy', wideOnly(' addresses')],
			act: (items, button) => once(button, () => copyAddresses(alias, items)),
		},
		{
			name: 'download',
			text: 'Download',
			act: (items, button) =>
				busyWhile(button, 'The download did not start', () => download(alias, items)),
		},
	];
	return { actions: actions.filter((action) => action !== false), remove: may('delete') && remove };
}

/**
 * Asks, and deletes items in requests of at most 1,000. Those that failed stay selected.
 * @param {Alias} alias
 * @param {Item[]} items
 * @param {Listing} list
 */
async function deleteItems(alias, items, list) {
	const total = plural(items.length, 'item');
	const only = items.length === 1 ? nameOf(items[0].filename) : '';
	const question = [
		nameList(items),
		h('p', null, items.length === 1
			? 'Its other sizes are removed too, and its address no longer works.'
			: 'Their other sizes are removed too, and their addresses no longer work.', ' ',
			backFor(alias, items.length)),
	];
	if (!await confirm(only ? `Delete “${only}”?` : `Delete ${total}?`, question, `Delete ${total}`)) return;
	/** @type {KeptName[]} */
	const kept = [];
	const { done, failed, error } = await withProgress(`Deleting ${total}`, items.length,
		async (progress) => {
			for await (const deleted of inSets(alias, [['action', 'delete']], items, deletion, progress)) {
				list.remove(...deleted.map(({ filename }) => filename));
				for (const { trash: id, filename } of deleted) if (id) kept.push({ id, filename });
			}
		});
	const text = done === items.length && only ? `${only} is deleted.` : `${plural(done, 'item')} deleted.`;
	if (failed.length > 0 || error) {
		await showResult(notDone(items.length - done, items.length, 'deleted'),
			done > 0 && h('p', null, text, ' The others stay selected.'),
			error && h('p', { class: 'trouble' }, explained(error)), failureList(failed));
	}
	list.regainFocus();
	if (failed.length === 0 && !error || kept.length > 0) told(alias, text, kept);
}

/**
 * Copies the addresses, one on each line. Private ones are signed, if they are not too many.
 * @param {Alias} alias
 * @param {Item[]} items
 */
async function copyAddresses(alias, items) {
	const signs = alias.private && may('sign') && items.length <= signedAtMost;
	const addresses = new Map(items.map((item) => [item.filename, absolute(item.full_path)]));
	let unsigned = alias.private && !signs;
	if (signs) {
		await eachOf(items, 4, { stopped: () => false }, async ({ filename, full_path: address }) => {
			const { query } = await get(['facts', alias.kind, alias.name, ...parts(filename)]).catch(
				() => ({}),
			);
			if (query) addresses.set(filename, absolute(`${address}?${query}`));
			else unsigned = true;
		});
	}
	const text = [...addresses.values()].join('\n');
	const result = `${
		items.length === 1 ? 'Address' : plural(items.length, 'address').replace(/s$/, 'es')
	} copied.`;
	const note = unsigned
		? ` They are private and not signed, so they do not open${
			!may('sign') ? ': your user may not sign them'
				: signs ? '' : `: at most ${signedAtMost} are signed at once`
		}.`
		: signs ? ' They are valid for an hour.' : '';
	try {
		await navigator.clipboard.writeText(text);
		announce(result + note);
	} catch { // no clipboard over http, or refused
		await ask('Addresses', [copyField('Addresses, one on each line', text), note && h('p', null, note)], [
			{ text: 'Close', value: '' },
		]);
	}
}

/**
 * Downloads items as one zip file: the answer to a form, which the browser saves. Only a refusal is
 * loaded into the frame of the form.
 * @param {Alias} alias
 * @param {Item[]} items
 */
async function download(alias, items) {
	if (items.length > perRequest)
		throw new Error(`At most ${plural(perRequest, 'item')} fit in one download. Select fewer.`);
	const target = newId('download');
	const frame = h('iframe', { name: target, title: 'Download', hidden: true });
	const form = h('form', {
		method: 'post',
		action: route(['zip', alias.kind, alias.name]),
		target,
		hidden: true,
	}, items.map(({ filename }) => h('input', { type: 'hidden', name: 'filename', value: filename })));
	document.body.append(frame, form);
	frame.addEventListener('load', async () => {
		if (frame.contentDocument?.URL === 'about:blank') return;
		const { error = 'The server has not sent the file.' } =
			parse(frame.contentDocument?.body.textContent ?? '')
				?? {};
		frame.remove();
		const session = await get(['session']).catch((failure) => failure);
		showError('The download did not start', session.loggedOut ? session : new Error(error));
	});
	form.submit();
	form.remove();
	const bytes = items.reduce((sum, item) => sum + item.size, 0);
	announce(`The download of ${plural(items.length, 'item')} begins, ${size(bytes)}.`);
}
