// @ts-check
// The folders and items of a folder or a search, or the entries of the trash, page by page.
//
// The dialog of an item (item.js) works with the list behind it through ItemOptions, which items.js
// passes: list.neighbour(filename, 1 | -1) returns a promise of the next or previous filename, '' at
// the end; list.remove(filename), list.refresh(filename) and list.renamed(old, filename) show a
// change without a reload. shown(filename) is called when the dialog shows another item in place of
// the first: the address follows, and the focus returns to that item when the dialog closes.
import { get } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { plural } from '../lib/format.js';
import { folderOf, keyOf, nameOf, parts } from '../lib/links.js';
import { roving } from '../lib/roving.js';
import { explained, failed, once } from '../lib/ui.js';
import { windowOf } from '../lib/window.js';
import { folderEntry, folderList } from './entries.js';
import { selecting } from './selection.js';

const patience = 5000; // in milliseconds
const firstPage = 60;
const furtherPage = 120;
const largestPage = 200;
const mostRestored = 2000; // entries
const ahead = '1500px'; // further pages are loaded before their end is in view

/**
 * Lists a source, which is that of a scope {alias, folder, search}, in the look and order of view. Its
 * place is kept in the history of the browser, so that Back and a reload of the page return to it.
 * @param {Scope} scope
 * @param {ListSource} source
 * @param {View} view
 * @param {ItemSelection} selection
 * @param {{removeFolder: (name: string) => void, unordered: (error: Error) => void,
 *   filled: (is: boolean) => void, sort: (order: string) => void}} on removeFolder deletes a folder;
 *   unordered sets the order by name if the server refuses the other; filled is called with whether there
 *   are entries; sort changes the order
 * @param {AbortSignal} signal
 */
export function listing(scope, source, view, selection, on, signal) {
	const { alias, folder, search } = scope;
	/** The folders and items that are loaded; how many items the server has sent, and how many follow, null
	 * if it has not counted them.
	 * @type {{folders: string[], items: Item[], next: string, sent: number, unseen: number | null,
	 *   run: number}} */
	const state = { folders: [], items: [], next: '', sent: 0, unseen: null, run: 0 };
	/** @type {Promise<void> | null} */
	let loading = null;
	let stalled = false; // further pages are loaded on request only
	let renewed = false; // since the last further page
	/** Keys of items that are removed: a page may be on its way with them, or have what is restored from
	 * the trash, which keeps it.
	 * @type {Set<string>} */
	const gone = new Set();
	/** @param {Item[]} items */
	const left = (items) => items.filter((item) => !gone.has(keyOf(item)));
	const content = h('div');
	const status = h('p', { class: 'muted', role: 'status' });
	const more = h('button', { type: 'button', hidden: true, onclick: () => once(more, onMore) });
	const moreLine = h('div', { class: 'more-line' }, status, more);
	const element = h('section', { class: 'listing', 'aria-label': 'Contents', tabindex: '-1' }, content,
		moreLine);
	element.addEventListener('keydown', (event) => { // the focused item was scrolled away
		if (event.target === element) lists.itemKeys.onkeydown(event);
	});
	const { extend } = selecting(element, selection, () => state.items);
	let lists = layout();
	const nearEnd = new IntersectionObserver(([entry]) => {
		if (entry.isIntersecting && state.next && !stalled && element.isConnected) further();
	}, { rootMargin: `0px 0px ${ahead} 0px` });

	function layout() {
		const folders = folderList();
		const items = source.look({ sort: on.sort, all: (is) => selection.set(state.items, is) });
		const count = () => state.items.length;
		const frame = windowOf(items.element, items.body, {
			count,
			make: entry,
			rowHeight: items.rowHeight,
			changed: (lostFocus) => {
				itemKeys.update();
				if (lostFocus) element.focus({ preventScroll: true }); // arrow keys go on from there
			},
		}, signal);
		const itemKeys = roving(items.body, {
			count,
			at: frame.show,
			shown: frame.shown,
			indexOf: frame.indexOf,
			more: further,
			moved: (from, to, event) => {
				if (event.shiftKey) extend(keyOf(state.items[to]), keyOf(state.items[from]));
			},
		});
		return { folders, items, frame, folderKeys: roving(folders), itemKeys };
	}

	/**
	 * The entry of an item, with its position for screen readers, since not all are in the page.
	 * @param {number} index
	 */
	function entry(index) {
		const item = state.items[index];
		const made = lists.items.entry(scope, item, selection.items.has(keyOf(item)));
		made.setAttribute(made.localName === 'tr' ? 'aria-rowindex' : 'aria-posinset', String(index + 1));
		if (made.localName === 'li')
			made.setAttribute('aria-setsize', String(state.next ? -1 : state.items.length));
		return made;
	}

	/**
	 * Loads a page and shows it. Returns whether the answer is still needed.
	 * @param {string} cursor
	 * @param {number} limit
	 */
	async function append(cursor, limit) {
		const run = state.run;
		const answer = await source.page(cursor, limit);
		if (run !== state.run) return false;
		const folders = (answer.folders ?? []).map(nameOf);
		const items = left(answer.result);
		state.folders.push(...folders);
		state.items.push(...items);
		state.next = answer.next ?? '';
		state.sent += answer.result.length;
		state.unseen = answer.total === undefined ? null : answer.total - state.sent;
		insert(folders);
		return true;
	}

	/**
	 * Appends pages for some seconds, until there are as many entries as wanted. Returns whether they
	 * are still needed.
	 * @param {string} cursor
	 * @param {number} wanted
	 */
	async function proceed(cursor, wanted) {
		const until = Date.now() + patience;
		const entries = () => state.folders.length + state.items.length;
		const enough = entries() + wanted;
		const limit = Math.min(wanted, largestPage);
		let needed = await append(cursor, limit);
		while (needed && state.next && entries() < enough && Date.now() < until && element.isConnected)
			needed = await append(state.next, limit);
		if (needed) stalled = Boolean(search) && entries() < enough;
		return needed;
	}

	/**
	 * The position of the user.
	 * @param {any} [focused]
	 * @returns {ListPosition}
	 */
	const position = (focused = document.activeElement) => ({
		count: Math.min(state.folders.length + state.items.length, mostRestored),
		top: scrollY,
		item: focused?.closest('[data-item]')?.dataset.item ?? '',
	});

	/** @param {ListPosition} position */
	function restore({ top, item }) {
		scrollTo(0, top);
		lists.frame.place();
		const isFree = document.activeElement?.matches('body, h1');
		if (isFree && item && find(item) >= 0) focus(item);
	}

	/**
	 * Loads the list anew.
	 * @param {ListPosition | null} [back] is shown again
	 */
	async function load(back) {
		Object.assign(state, { folders: [], items: [], next: '', sent: 0, unseen: null, run: state.run + 1 });
		const held = element.contains(document.activeElement) ? document.activeElement : null;
		nearEnd.disconnect();
		loading = null;
		gone.clear();
		element.setAttribute('aria-busy', 'true');
		more.hidden = true;
		tell(true, search ? 'Searching …' : 'Loading …');
		lists = layout();
		const run = state.run;
		let trouble;
		try {
			await proceed('', Math.max(firstPage, back?.count ?? 0));
		} catch (error) {
			if (run !== state.run) return undefined;
			tell(false, '');
			if (error.status === 400 && view.order !== 'name') {
				on.unordered(error);
				return load();
			}
			if (state.next) trouble = error; // some pages are shown
			else fill(content, failed(error, () => load()));
		}
		if (run !== state.run) return undefined;
		element.removeAttribute('aria-busy');
		ended(true, trouble);
		if (back) restore(back);
		const head = /** @type {HTMLElement | null} */ (held)?.dataset.sort;
		const again = head
			? /** @type {HTMLElement | null} */ (element.querySelector(`[data-sort="${head}"]`)) : null;
		if (again) again.focus();
		else if (held)
			regainFocus(/** @type {HTMLElement | null} */ (held.closest('[data-item]'))?.dataset.item);
		return undefined;
	}

	/**
	 * Loads the next page, once at a time. A failure is shown beside the button. If the cursor has
	 * expired, the list is loaded anew.
	 */
	function further(aloud = false) {
		if (!state.next) return Promise.resolve();
		const run = state.run;
		loading ??= proceed(state.next, furtherPage).then((needed) => {
			if (needed) ended(aloud);
			renewed &&= !needed;
		}, (error) => {
			if (run !== state.run) return undefined;
			if (error.status !== 400 || renewed) return ended(aloud, error);
			renewed = true;
			return load(position());
		}).finally(() => {
			if (run === state.run) loading = null;
		});
		return loading;
	}

	/**
	 * The end of a page: the button and the status.
	 * @param {boolean} aloud
	 * @param {any} [error]
	 */
	function ended(aloud, error) {
		stalled ||= Boolean(error);
		more.hidden = !state.next;
		more.textContent = error ? 'Try again'
			: search && state.unseen === null ? 'Continue searching' : 'Show more';
		tell(aloud || Boolean(error) || !state.next || stalled,
			error ? explained(error) : summary(state, search));
		nearEnd.disconnect();
		if (!stalled) nearEnd.observe(moreLine); // it may still be in view
	}

	/** Shows more, and focuses the first new entry. */
	async function onMore() {
		stalled = false;
		const [folders, items] = [state.folders.length, state.items.length];
		await further(true);
		const hasFocus = state.folders.length > folders ? lists.folderKeys.focus(folders)
			: lists.itemKeys.focus(items);
		if (!hasFocus && more.hidden) element.focus();
	}

	/** Shows all entries anew. */
	function draw() {
		lists = layout();
		insert(state.folders);
	}

	/**
	 * Shows further folders, and the items that are near the view.
	 * @param {string[]} folders
	 */
	function insert(folders) {
		lists.folders.append(...folders.map((name) => folderEntry(scope, name, on.removeFolder)));
		update();
	}

	/** Makes the page true after a change of the entries. */
	function update() {
		const nothing = state.folders.length + state.items.length === 0;
		on.filled(!nothing || Boolean(state.next));
		if (nothing && !state.next) fill(content, source.nothing(gone.size > 0));
		else if (!content.contains(lists.frame.element)) fill(content, lists.folders, lists.frame.element);
		lists.folders.hidden = state.folders.length === 0;
		lists.items.element.hidden = state.items.length === 0;
		lists.folderKeys.update();
		lists.frame.place();
		showSelected();
		tell(false, summary(state, search));
	}

	function showSelected() {
		const every = state.items.length > 0
			&& state.items.every((item) => selection.items.has(keyOf(item)));
		lists.items.selected?.(selection.items.size > 0, every);
	}

	/**
	 * Shows the status. Only some are announced: not that of each page while the user scrolls.
	 * @param {boolean} aloud
	 * @param {...Child} text
	 */
	function tell(aloud, ...text) {
		status.setAttribute('aria-live', aloud ? 'polite' : 'off');
		fill(status, text);
	}

	/** @param {string} key */
	const find = (key) => state.items.findIndex((item) => keyOf(item) === key);

	/**
	 * Removes items, and moves a lost focus to the item after the first of them.
	 * @param {...string} keys
	 */
	function remove(...keys) {
		const removed = new Set(keys);
		keys.forEach((key) => gone.add(key));
		const first = state.items.findIndex((item) => removed.has(keyOf(item)));
		selection.set([...selection.items.values()].filter((item) => removed.has(keyOf(item))), false);
		state.items = state.items.filter((item) => !removed.has(keyOf(item)));
		lists.frame.redraw();
		update();
		ended(false);
		if (first >= 0) lists.itemKeys.stopAt(Math.min(first, state.items.length - 1));
		regainFocus();
	}

	/** @param {string} name */
	function removeFolder(name) {
		const index = state.folders.indexOf(name);
		state.folders = state.folders.filter((each) => each !== name);
		lists.folders.children[index]?.remove();
		update();
		const near = lists.folders.children[Math.min(index, state.folders.length - 1)];
		(near?.querySelector('a') ?? element).focus();
	}

	/**
	 * Focuses an item, or if it is not loaded the one that Tab reaches.
	 * @param {string} [key]
	 */
	function focus(key = '') {
		const index = find(key);
		if (!lists.itemKeys.focus(index < 0 ? undefined : index)) element.focus();
	}

	/**
	 * Focuses an item, or else the list, if the focused element is gone or hidden.
	 * @param {string} [key]
	 */
	function regainFocus(key) {
		const held = document.activeElement;
		if (!held || held === document.body || held.getClientRects().length === 0) focus(key);
	}

	/**
	 * @param {string} filename
	 * @param {1 | -1} step
	 */
	async function neighbour(filename, step) {
		const index = find(filename);
		if (index < 0) return '';
		if (index + step === state.items.length) await further();
		return state.items[index + step]?.filename ?? '';
	}

	/** @param {string} filename */
	const refresh = (filename) => renamed(filename, filename);

	/**
	 * @param {string} old
	 * @param {string} filename
	 */
	async function renamed(old, filename) {
		if (find(old) < 0) return;
		const path = ['items', alias.kind, alias.name, ...parts(filename)];
		const item = search || folderOf(filename) === folder
			? await get(path).then(({ result }) => result[0], () => null)
			: null;
		const index = find(old);
		if (index < 0) return;
		if (!item) {
			remove(old);
			return;
		}
		const selected = selection.items.has(old);
		selection.set([state.items[index]], false);
		selection.set([item], selected);
		state.items[index] = item;
		const held = element.contains(document.activeElement);
		lists.frame.redraw();
		if (held) focus(filename);
	}

	/**
	 * Reads the items that are not loaded yet, without showing them, until each returns false. Returns
	 * whether it has read all.
	 * @param {(items: Item[]) => boolean} each
	 */
	async function rest(each) {
		const run = state.run;
		let cursor = state.next;
		while (cursor) {
			const answer = await source.page(cursor, largestPage);
			if (run !== state.run || !each(left(answer.result))) return false;
			cursor = answer.next ?? '';
		}
		return true;
	}

	/** @param {EventTarget | null} [focused] */
	function keepPosition(focused) {
		if (state.items.length > 0 && !signal.aborted)
			history.replaceState({ ...history.state, list: position(focused ?? undefined) }, '');
	}
	addEventListener('undone', () => load(position()), { signal });
	document.addEventListener('scrollend', () => keepPosition(), { signal });
	element.addEventListener('focusout', ({ target }) => keepPosition(target));

	selection.onChange((keys) => {
		const changed = new Set(keys);
		element.classList.toggle('selecting', selection.items.size > 0);
		showSelected();
		for (const shown of /** @type {HTMLElement[]} */ ([...lists.items.body.children])) {
			const key = shown.dataset.item ?? '';
			if (!changed.has(key)) continue;
			const selected = selection.items.has(key);
			shown.classList.toggle('selected', selected);
			/** @type {HTMLInputElement} */ (shown.querySelector('input')).checked = selected;
		}
	});

	return {
		element,
		load,
		draw,
		remove,
		removeFolder,
		focus,
		regainFocus,
		neighbour,
		refresh,
		renamed,
		rest,
		items: () => state.items,
		/** The names of the loaded folders. */
		folders: () => state.folders,
		/** Whether there are items that are not loaded yet. */
		more: () => Boolean(state.next),
	};
}

/**
 * @param {{folders: string[], items: Item[], next: string, unseen: number | null}} state
 * @param {string} search
 */
export function summary({ folders, items, next, unseen }, search) {
	const loaded = plural(items.length, 'item');
	const all = next && unseen !== null && items.length > 0 ? plural(items.length + unseen, 'item') : '';
	const part = items.length.toLocaleString('en');
	if (search) return all ? `Found ${all}, ${part} shown.` : `Found ${loaded}${next ? ' so far' : ''}.`;
	const counts = [folders.length && plural(folders.length, 'folder'),
		items.length && (all ? `${part} of ${all}` : loaded)];
	const shown = counts.filter(Boolean).join(', ');
	return shown && shown + (!next ? '.' : all ? ' shown.' : ' shown, there are more.');
}
