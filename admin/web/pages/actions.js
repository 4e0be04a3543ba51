// @ts-check
// The bar of actions on the selected items: delete, move, copy addresses, download.
import { get, parse, post, route } from '../lib/api.js';
import { fill, h, newId } from '../lib/dom.js';
import { plural, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { absolute, nameOf, parts } from '../lib/links.js';
import { eachOf, failureList, showResult, withProgress } from '../lib/progress.js';
import { may } from '../lib/state.js';
import { announce, ask, busyWhile, confirm, copyField, explained, once, showError } from '../lib/ui.js';
import { moveItems } from './move.js';
import { maxSelected } from './selection.js';

const perRequest = 1000; // items that one request deletes or downloads
const signedAtMost = 50; // each needs a request
const shownNames = 5;

/**
 * The bar of actions on the selected items. It works by keyboard too, until signal is aborted.
 * @param {Scope} scope
 * @param {Alias[]} aliases
 * @param {Listing} list
 * @param {ItemSelection} selection
 * @param {AbortSignal} signal
 */
export function selectionBar(scope, aliases, list, selection, signal) {
	const { alias } = scope;
	const selected = () => [...selection.items.values()];
	const count = h('p', { class: 'selection-count' });
	let reading = false;
	let restToo = false; // the button selects those that are not shown too
	let every = 0; // the number of all items if they were selected, those that are not shown too
	/**
	 * @param {string} name
	 * @param {Child} text
	 * @param {(button: HTMLElement) => any} act
	 * @param {string} [look]
	 */
	const button = (name, text, act, look) =>
		h('button', {
			type: 'button',
			class: look,
			onclick: (event) => {
				reading = false;
				act(event.currentTarget);
			},
		}, icon(name), h('span', null, text));
	const all = h('button', { type: 'button', class: 'plain', onclick: selectAll });
	const clear = h('button', { type: 'button', class: 'plain', onclick: clearSelection }, icon('cross'),
		'Clear');
	const element = h('section', { class: 'selection', 'aria-label': 'Selection', hidden: true },
		h('div', { class: 'selection-head' }, count, all, clear),
		h('div', { class: 'selection-actions' }, may('delete')
			&& button('trash', 'Delete', () => deleteItems(alias, selected(), list), 'quiet-danger'),
			may('move') && button('move', 'Move', () => moveItems(scope, aliases, selected(), list)),
			button('copy', ['Copy', wideOnly(' addresses')],
				(self) => once(self, () => copyAddresses(alias, selected()))),
			button('download', 'Download',
				(self) => busyWhile(self, 'The download did not start', () => download(alias, selected())))));

	function show() {
		const { items } = selection;
		const hadFocus = element.contains(document.activeElement);
		element.hidden = items.size === 0;
		let bytes = 0;
		for (const item of items.values()) bytes += item.size;
		const most = items.size >= maxSelected && ', the most at once';
		fill(count, h('strong', null, plural(items.size, 'item')), wideOnly(' selected'), `, ${size(bytes)}`,
			most);
		restToo = list.items().every(({ filename }) => items.has(filename));
		all.hidden = !reading && restToo
			&& (!list.more() || items.size >= maxSelected || items.size === every);
		fill(all, reading ? 'Stop'
			: restToo ? 'Select the rest' : h('span', null, 'Select all', wideOnly(' shown')));
		if (items.size > 0)
			announce(`${plural(items.size, 'item')} selected${most || ''}`, { visible: false });
		if (hadFocus && element.hidden) list.focus();
	}

	function clearSelection() {
		reading = false;
		selection.clear();
		announce('Nothing selected', { visible: false });
	}

	/** First the loaded items, then those that are not loaded yet. */
	async function selectAll() {
		if (reading) {
			reading = false;
			show();
			return;
		}
		const rest = restToo;
		selection.set(list.items(), true);
		if (!rest) return;
		reading = true;
		try {
			const read = await list.rest((items) => {
				if (!reading || signal.aborted) return false;
				selection.set(items, true);
				return selection.items.size < maxSelected;
			});
			if (read) every = selection.items.size;
		} catch (error) {
			announce(`Not all are selected: ${error.message}`);
		}
		reading = false;
		if (!signal.aborted) show();
	}

	/** @param {KeyboardEvent} event */
	function onkeydown(event) {
		const target = /** @type {HTMLElement} */ (event.target);
		if (document.querySelector('dialog[open]')) return;
		if (target.closest('select, textarea, input:not([type="checkbox"])')) return;
		if (event.key === 'a' && (event.ctrlKey || event.metaKey) && list.items().length > 0) {
			event.preventDefault();
			selection.set(list.items(), true);
		} else if (event.key === 'Escape' && selection.items.size > 0) clearSelection();
		else if (event.key === 'Delete' && may('delete') && list.element.contains(target)) {
			const focused = /** @type {HTMLElement | null} */ (target.closest('[data-item]'))?.dataset.item;
			const items = selection.items.size > 0 ? selected()
				: list.items().filter(({ filename }) => filename === focused);
			if (items.length > 0) deleteItems(alias, items, list);
		}
	}

	selection.onChange(show);
	document.addEventListener('keydown', onkeydown, { signal });
	return element;
}

/** @param {string} text */
const wideOnly = (text) => h('span', { class: 'wide-only' }, text);

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
		h('ul', null, items.slice(0, shownNames).map(({ filename }) => h('li', null, filename)),
			items.length > shownNames
				&& h('li', null, `and ${(items.length - shownNames).toLocaleString('en')} more`)),
		h('p', null, items.length === 1
			? 'Its other sizes are removed too, and its address no longer works.'
			: 'Their other sizes are removed too, and their addresses no longer work.',
			' This cannot be undone.'),
	];
	if (!await confirm(only ? `Delete “${only}”?` : `Delete ${total}?`, question, `Delete ${total}`)) return;
	const { done, failed, error } = await withProgress(`Deleting ${total}`, items.length,
		async (progress) => {
			for (let i = 0; i < items.length && !progress.stopped(); i += perRequest)
				await deleteSome(alias, items.slice(i, i + perRequest), list, progress);
		});
	const text = done === items.length && only ? `${only} is deleted.` : `${plural(done, 'item')} deleted.`;
	if (failed.length > 0 || error) {
		await showResult(`${(items.length - done).toLocaleString('en')} of ${total} not deleted`,
			h('p', null, text, ' The others stay selected.'),
			error && h('p', { class: 'trouble' }, explained(error)), failureList(failed));
	} else announce(text);
	list.regainFocus();
}

/**
 * Deletes items by one request.
 * @param {Alias} alias
 * @param {Item[]} items
 * @param {Listing} list
 * @param {Progress} progress
 */
async function deleteSome(alias, items, list, progress) {
	/** @type {[string, string][]} */
	const fields = [['action', 'delete']];
	for (const { filename } of items) fields.push(['filename', filename]);
	/** @type {{result: {filename: string, deleted: boolean, message?: string}[]}} */
	const { result } = await post(['items', alias.kind, alias.name], fields);
	const deleted = result.filter((each) => each.deleted);
	progress.done(deleted.length);
	list.remove(...deleted.map(({ filename }) => filename));
	for (const each of result)
		if (!each.deleted) progress.fail(each.filename, each.message ?? 'It was not deleted.');
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
