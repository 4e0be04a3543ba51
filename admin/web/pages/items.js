// @ts-check
// Items of an alias: folders, search, upload.
import { get } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { commonFolder, folderOf, itemsHash, parts } from '../lib/links.js';
import { may, preference, state } from '../lib/state.js';
import { announce, closeDialogs, empty, pageHead } from '../lib/ui.js';
import { selectionBar } from './actions.js';
import { deleteFolder, newFolder } from './folders.js';
import { itemDialog } from './item.js';
import { listing } from './listing.js';
import { newSelection } from './selection.js';
import { uploader } from './upload.js';

/**
 * The page of the items of an alias.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function items({ segments, query, first, signal }) {
	/** @type {{aliases: Alias[]}} */
	const { aliases } = first ?? await get(['aliases'], {}, signal);
	const alias = segments.length < 2 ? defaultAlias(aliases)
		: aliases.find(({ kind, name }) => kind === segments[0] && name === segments[1]);
	if (!alias && segments.length < 2) {
		return {
			title: 'Items',
			content: [pageHead('Items'), state.session.items_only
				? empty('items', 'Nothing here', 'There is nothing that you may use. Ask the administrator.')
				: empty('items', 'No alias yet', 'Items are uploaded to aliases. Add one first.',
					h('a', { class: 'button', href: '#/aliases' }, 'Aliases'))],
		};
	}
	if (!alias) throw new Error(`There is no library called “${segments[1]}” here.`);
	const scope = { alias, folder: segments.slice(2).join('/'), search: query.search ?? '' };
	return browser(scope, aliases, query.item ?? '', signal);
}

/** @param {Alias[]} aliases */
const defaultAlias = (aliases) =>
	aliases.find(({ kind, name }) => kind === 'img' && name === 'content') ?? aliases[0];

/**
 * @param {Scope} scope
 * @param {Alias[]} aliases
 * @param {string} item
 * @param {AbortSignal} signal
 * @returns {Page}
 */
function browser(scope, aliases, item, signal) {
	const { alias, folder, search } = scope;
	/** @type {View} */
	const view = { look: preference('view') === 'list' ? 'list' : 'grid', order: preferredOrder() };
	const selection = newSelection();
	const order = orderSelect(scope, view, () => list.load());
	const list = listing(scope, view, selection, {
		removeFolder: (name) => deleteFolder(scope, name, list),
		unordered: order.refused,
		sort: order.choose,
		filled: (is) => upload && upload.fold(is || search !== ''),
	}, signal);
	const upload = may('upload')
		&& uploader(alias, folder, (stored, stayed) => uploaded(scope, stored, stayed, list));
	const panel = itemPanel(scope, list, signal);
	list.load(history.state?.list);
	panel.show(item);
	return {
		title: [folder, `Items of ${alias.name}`].filter(Boolean).join(' · '),
		content: [
			pageHead('Items', upload
				&& [
					h('button', {
						type: 'button',
						'aria-label': 'New folder',
						title: 'New folder',
						onclick: () => newFolder(scope),
					}, icon('folder'), h('span', { class: 'wide-only' }, 'New folder')),
					upload.toggle,
					h('button', { type: 'button', class: 'primary', onclick: () => upload.choose() },
						icon('upload'), 'Upload'),
				]),
			h('div', { class: 'toolbar' }, aliases.length > 1 && aliasSelect(aliases, alias), order.element,
				viewToggle(view, list), searchForm(scope)),
			crumbs(scope),
			upload?.element,
			order.notice,
			list.element,
			selectionBar(scope, aliases, list, selection, signal),
		],
		update: (route) => { // in the same scope only an item is opened or closed
			const [kind, name, ...rest] = route.segments;
			if (kind !== alias.kind || name !== alias.name || rest.join('/') !== folder
				|| (route.query.search ?? '') !== search) return false;
			panel.show(route.query.item ?? '', true);
			return true;
		},
	};
}

/**
 * Shows the stored files: in the list, or in their folder if the user has stayed on the page.
 * @param {Scope} scope
 * @param {string[]} stored
 * @param {boolean} stayed
 * @param {Listing} list
 */
function uploaded({ alias, folder, search }, stored, stayed, list) {
	const common = commonFolder(stored);
	const isHere = common === folder || stored.some((filename) => folderOf(filename) === folder);
	const isBelow = stored.some((filename) => !folder || filename.startsWith(`${folder}/`));
	if (stayed ? isHere && !search : isBelow) list.load();
	else if (stayed && !document.querySelector('dialog[open]'))
		location.hash = itemsHash(alias.kind, alias.name, common);
}

/**
 * @param {Alias[]} aliases
 * @param {Alias} alias
 */
function aliasSelect(aliases, alias) {
	/** @param {Alias} each */
	const option = (each) =>
		h('option', { value: `${each.kind}/${each.name}`, selected: each === alias },
			each.private ? `${each.name} (private)` : each.name);
	const kinds = [['img', 'Images'], ['file', 'Files']].filter(([kind]) =>
		aliases.some((each) => each.kind === kind)
	);
	const select = h('select', {
		id: 'alias',
		onchange: () => {
			const [kind, name] = select.value.split('/');
			location.hash = itemsHash(kind, name);
		},
	},
		kinds.map(([kind, title]) =>
			h('optgroup', { label: title }, aliases.filter((each) => each.kind === kind).map(option))
		));
	return h('div', { class: 'tool' }, h('label', { for: 'alias' }, 'Library'), select);
}

const orders = {
	name: 'Name',
	'-name': 'Name, reversed',
	'-modified': 'Newest first',
	modified: 'Oldest first',
	'-size': 'Largest first',
	size: 'Smallest first',
};

const preferredOrder = () => {
	const order = preference('order') ?? '';
	return order in orders ? order : 'name';
};

/** The reasons why lists have the order by name only, until the panel is loaded again.
 * @type {Map<string, string>} */
const unordered = new Map();

/**
 * The choice of the order. The server refuses orders of very long lists: these are shown by name, and
 * other lists as preferred.
 * @param {Scope} scope
 * @param {View} view
 * @param {() => void} changed
 */
function orderSelect({ alias, folder, search }, view, changed) {
	const list = itemsHash(alias.kind, alias.name, folder, { search });
	const notice = h('p', { class: 'notice warn', role: 'status', hidden: true });
	const select = h('select', { id: 'order', onchange: () => choose(select.value) },
		Object.entries(orders).map(([order, text]) => h('option', { value: order }, text)));
	/** @param {string} order */
	function choose(order) {
		view.order = select.value = order;
		preference('order', order);
		notice.hidden = true;
		changed();
	}
	function byName() {
		view.order = 'name';
		notice.hidden = false;
		notice.textContent = `The items are shown by name: ${unordered.get(list)}.`;
	}
	if (view.order !== 'name' && unordered.has(list)) byName();
	select.value = view.order;
	return {
		element: h('div', { class: 'tool' }, h('label', { for: 'order' }, 'Order'), select),
		notice,
		choose,
		/** @param {Error} error */
		refused: (error) => {
			unordered.set(list, error.message);
			byName();
			select.value = view.order;
		},
	};
}

/** @param {Scope} scope */
function searchForm({ alias, folder, search }) {
	const input = h('input', {
		id: 'search',
		type: 'search',
		value: search,
		placeholder: 'A part of the name',
		autocomplete: 'off',
		spellcheck: 'false',
	});
	/** @param {Event} event */
	const submit = (event) => {
		event.preventDefault();
		location.hash = itemsHash(alias.kind, alias.name, folder, { search: input.value.trim() });
	};
	return h('form', { class: 'tool grow', role: 'search', onsubmit: submit },
		h('label', { for: 'search' }, folder ? 'Search by name in this folder' : 'Search by name'),
		h('div', { class: 'joined' }, input,
			h('button', { type: 'submit', 'aria-label': 'Search' }, icon('search')),
			search && h('a', { class: 'button', href: itemsHash(alias.kind, alias.name, folder) }, 'Clear')));
}

/**
 * @param {View} view
 * @param {Listing} list
 */
function viewToggle(view, list) {
	const buttons = [['grid', 'Images'], ['list', 'List']].map(([look, text]) =>
		h('button', {
			type: 'button',
			'aria-pressed': String(view.look === look),
			'aria-label': text,
			title: text,
			'data-look': look,
			onclick: () => {
				view.look = preference('view', look) ?? look;
				for (const button of buttons) button.setAttribute('aria-pressed',
						String(button.dataset.look === view.look));
				list.draw();
			},
		}, icon(look))
	);
	return h('div', { class: 'tool joined', role: 'group', 'aria-label': 'View' }, buttons);
}

/** @param {Scope} scope */
function crumbs({ alias, folder, search }) {
	const names = parts(folder);
	const here = search ? -1 : names.length;
	/**
	 * @param {string} text
	 * @param {number} depth
	 */
	const link = (text, depth) =>
		h('li', null, h('a', {
			href: itemsHash(alias.kind, alias.name, names.slice(0, depth).join('/')),
			'aria-current': depth === here && 'page',
		}, text));
	return h('nav', { class: 'crumbs', 'aria-label': 'Folder' },
		h('ol', { role: 'list' }, link(alias.name, 0), names.map((name, i) => link(name, i + 1)),
			search && h('li', null, `Search for “${search}”`)));
}

/**
 * The open item is part of the address: it can be linked, and Back closes it.
 * @param {Scope} scope
 * @param {Listing} list
 * @param {AbortSignal} signal
 */
function itemPanel({ alias, folder, search }, list, signal) {
	/** @type {HTMLDialogElement | null} */
	let dialog = null;
	let filename = '';
	let openedHere = false;
	/** @param {string} [item] */
	const address = (item = '') => itemsHash(alias.kind, alias.name, folder, { search, item });
	/** @type {ItemOptions} */
	const options = {
		neighbour: list.neighbour,
		shown: follow,
		deleted: (item) => {
			announce(`${item} is deleted.`);
			list.remove(item);
		},
		renamed: list.renamed,
		replaced: list.refresh,
	};
	/** @param {string} item */
	function follow(item) {
		filename = item;
		history.replaceState(history.state, '', address(item)); // without an event
	}
	/**
	 * @param {string} wanted
	 * @param {boolean} [clicked]
	 */
	function show(wanted, clicked = false) {
		if (wanted === filename) return;
		if (filename === '') openedHere = clicked;
		filename = wanted;
		dialog = null;
		closeDialogs();
		if (wanted === '') return;
		const mine = dialog = itemDialog(alias, wanted, options);
		mine.addEventListener('close', () => {
			if (signal.aborted || dialog !== mine) return; // another page or item is shown already
			list.focus(filename);
			dialog = null;
			filename = '';
			if (openedHere) history.back();
			else location.replace(address());
		});
	}
	return { show };
}
