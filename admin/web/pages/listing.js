// @ts-check
// The folders and items of a folder or a search, page by page.
//
// The dialog of an item (item.js) works with the list behind it through ItemOptions, which items.js
// passes: list.neighbour(filename, 1 | -1) returns a promise of the next or previous filename, '' at
// the end; list.remove(filename), list.refresh(filename) and list.renamed(old, filename) show a
// change without a reload. shown(filename) is called when the dialog shows another item in place of
// the first: the address follows, and the focus returns to that item when the dialog closes.
import { get } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { plural, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { itemsHash, previewOf } from '../lib/links.js';
import { empty, explained, failed, once, time } from '../lib/ui.js';

const patience = 5000; // in milliseconds
const pageSize = 60;

const imageTypes = /^image\/(jpeg|png|gif|webp|avif)$/;

/**
 * Lists a scope {alias, folder, search} in the look of view: {element, load, draw, remove, focus}.
 * Further pages are loaded on request.
 * @param {Scope} scope
 * @param {View} view
 */
export function listing(scope, view) {
	const { alias, folder, search } = scope;
	/** @type {{folders: string[], items: Item[], next: string, searched: number, run: number}} */
	const state = { folders: [], items: [], next: '', searched: 0, run: 0 };
	const content = h('div');
	const status = h('p', { class: 'muted', role: 'status' });
	const more = h('button', { type: 'button', hidden: true, onclick: () => loadMore() },
		search ? 'Continue searching' : 'Show more');
	const element = h('section', { class: 'listing', 'aria-label': 'Contents', tabindex: '-1' }, content,
		h('div', { class: 'more-line' }, status, more));
	let lists = { folders: folderList(), items: grid() };

	/**
	 * Returns whether the answer is still needed.
	 * @param {string} cursor
	 */
	async function page(cursor) {
		const run = state.run;
		const answer = await get(['items', alias.kind, alias.name], {
			folder,
			search,
			cursor,
			limit: pageSize,
		});
		if (run !== state.run) return false;
		state.folders.push(...answer.folders ?? []);
		state.items.push(...answer.items ?? []);
		state.next = answer.next ?? '';
		state.searched += answer.looked_at ?? 0;
		return true;
	}

	async function load() {
		Object.assign(state, { folders: [], items: [], next: '', searched: 0, run: state.run + 1 });
		element.setAttribute('aria-busy', 'true');
		more.hidden = true;
		status.textContent = search ? 'Searching …' : 'Loading …';
		try {
			if (await page('')) {
				draw();
				await proceed(pageSize);
			}
		} catch (error) {
			status.textContent = '';
			fill(content, failed(error, load));
		}
		element.removeAttribute('aria-busy');
		more.hidden = !state.next;
	}

	/**
	 * Continues a search by itself for some seconds, until as many items as wanted are found.
	 * Returns the first new link.
	 * @param {number} wanted
	 */
	async function proceed(wanted) {
		const until = Date.now() + patience;
		let first;
		const wants = () => element.isConnected && state.next && state.items.length < wanted;
		while (search && wants() && Date.now() < until) {
			const shown = state.items.length;
			if (!await page(state.next)) return first;
			const added = append(state.folders.length, shown);
			first ??= added;
		}
		return first;
	}

	const loadMore = () =>
		once(more, async () => {
			const [folders, items] = [state.folders.length, state.items.length];
			try {
				if (!await page(state.next)) return;
				const added = append(folders, items) ?? await proceed(items + pageSize);
				if (added) added.focus();
				else if (more.hidden) element.focus();
			} catch (error) {
				fill(status, explained(error));
			}
		});

	function draw() {
		lists = { folders: folderList(), items: (view.look === 'list' ? table : grid)() };
		append(0, 0);
	}

	/**
	 * Shows the new entries; returns the first new link.
	 * @param {number} folders
	 * @param {number} items
	 */
	function append(folders, items) {
		const nothing = state.folders.length + state.items.length === 0;
		if (nothing && !state.next) fill(content, nothingHere(search));
		else if (!content.contains(lists.items.element)) fill(content, lists.folders, lists.items.element);
		const added = [
			...state.folders.slice(folders).map((name) => folderEntry(scope, name)),
			...state.items.slice(items).map((item) => lists.items.entry(scope, item)),
		];
		lists.folders.append(...added.slice(0, state.folders.length - folders));
		lists.items.body.append(...added.slice(state.folders.length - folders));
		lists.folders.hidden = state.folders.length === 0;
		lists.items.element.hidden = state.items.length === 0;
		more.hidden = !state.next || element.hasAttribute('aria-busy');
		status.textContent = summary(state, search);
		return added[Math.min(state.folders.length - folders, added.length - 1)]?.querySelector('a');
	}

	/** @param {string} filename */
	function remove(filename) {
		state.items = state.items.filter((item) => item.filename !== filename);
		draw();
		element.focus(); // the focused link is gone
	}

	/**
	 * Focuses the link of an item, if it is shown.
	 * @param {string} filename
	 */
	function focus(filename) {
		const href = hashOf(scope, { filename });
		([...element.querySelectorAll('a')].find((link) => link.getAttribute('href') === href) ?? element)
			.focus();
	}

	return { element, load, draw, remove, focus };
}

/** @param {string} search */
const nothingHere = (search) => (search
	? empty('search', 'Nothing found', `No name here contains “${search}”.`)
	: empty('folder', 'Nothing here yet', 'Items appear here when they are uploaded.'));

/**
 * @param {{folders: string[], items: Item[], next: string, searched: number}} state
 * @param {string} search
 */
function summary({ folders, items, next, searched }, search) {
	if (search) {
		const soFar = next ? ' so far' : '';
		return `Searched ${plural(searched, 'name')}${soFar}, found ${items.length.toLocaleString('en')}.`;
	}
	const counts = [folders.length && plural(folders.length, 'folder'),
		items.length && plural(items.length, 'item')];
	const shown = counts.filter(Boolean).join(', ');
	return shown && shown + (next ? ' shown, there are more.' : '.');
}

const folderList = () => h('ul', { class: 'folders', role: 'list', 'aria-label': 'Folders' });

/**
 * @param {Scope} scope
 * @param {string} name
 */
const folderEntry = ({ alias, folder }, name) =>
	h('li', null,
		h('a', { href: itemsHash(alias.kind, alias.name, folder ? `${folder}/${name}` : name) },
			icon('folder'), h('span', null, name)));

/**
 * @param {Scope} scope
 * @param {{filename: string}} item
 */
const hashOf = ({ alias, folder, search }, item) =>
	itemsHash(alias.kind, alias.name, folder, { search, item: item.filename });

/**
 * The name of an item relative to the scope.
 * @param {Scope} scope
 * @param {Item} item
 */
const below = (
	{ folder, search },
	item,
) => (search ? item.filename.slice(folder ? folder.length + 1 : 0) : item.name);

/** @returns {Look} */
function grid() {
	const body = h('ul', { class: 'grid', role: 'list', 'aria-label': 'Items' });
	return {
		element: body,
		body,
		entry: (scope, item) =>
			h('li', null,
				h('a', { href: hashOf(scope, item) }, thumbnail(scope.alias, item),
					h('span', { class: 'name', title: item.name }, below(scope, item))),
				h('p', { class: 'muted small-text' }, size(item.size), ' · ', time(item.modified))),
	};
}

/** @returns {Look} */
function table() {
	const body = h('tbody');
	const head = ['Name', 'Size', 'Changed', 'Type'].map((text) =>
		h('th', { scope: 'col', class: 'col-' + text.toLowerCase() }, text)
	);
	return {
		element: h('table', { class: 'items', 'aria-label': 'Items' }, h('thead', null, h('tr', null, head)),
			body),
		body,
		entry: (scope, item) =>
			h('tr', null,
				h('th', { scope: 'row' },
					h('a', { href: hashOf(scope, item) }, icon(imageTypes.test(item.type) ? 'items' : 'file'),
						h('span', null, below(scope, item)))),
				h('td', { class: 'col-size' }, size(item.size)),
				h('td', { class: 'col-changed' }, time(item.modified)),
				h('td', { class: 'col-type' }, item.type)),
	};
}

/**
 * @param {Alias} alias
 * @param {Item} item
 */
function thumbnail(alias, item) {
	const box = h('span', { class: 'thumb' });
	if (!imageTypes.test(item.type))
		return fill(box, icon(item.type?.startsWith('image/') ? 'items' : 'file'));
	return fill(box, h('img', {
		src: previewOf(alias, item, { thumbnail: '1' }),
		alt: `Preview of ${item.name}`,
		loading: 'lazy',
		decoding: 'async',
		onerror: () => fill(box, icon('items')),
	}));
}
