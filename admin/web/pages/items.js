// @ts-check
// Items of an alias: folders, search, upload.
import { get } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { commonFolder, folderOf, itemsHash, parts, trashHash } from '../lib/links.js';
import { may, mayAct, preference, state } from '../lib/state.js';
import { empty, pageHead } from '../lib/ui.js';
import { itemActions } from './actions.js';
import { selectionBar, wideOnly } from './bar.js';
import { grid, table } from './entries.js';
import { deleteFolder, newFolder } from './folders.js';
import { itemDialog } from './item.js';
import { listing } from './listing.js';
import { opened } from './opened.js';
import { pastButton } from './past.js';
import { told } from './restore.js';
import { newSelection } from './selection.js';
import { aliasSelect, searchForm } from './toolbar.js';
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
	const list = listing(scope, sourceOf(scope, view), view, selection, {
		removeFolder: (name) => deleteFolder(scope, name, list),
		unordered: order.refused,
		sort: order.choose,
		filled: (is) => upload && upload.fold(is || search !== ''),
	}, signal);
	const upload = may('upload')
		&& uploader(alias, folder, (stored, stayed) => uploaded(scope, stored, stayed, list));
	const panel = opened(list, {
		address: (item = '') => itemsHash(alias.kind, alias.name, folder, { search, item }),
		open: (filename, follow) => itemDialog(alias, filename, itemOptions(alias, list, follow)),
	}, signal);
	list.load(history.state?.list);
	panel.show(item);
	return {
		title: [folder, `Items of ${alias.name}`].filter(Boolean).join(' · '),
		content: [
			pageHead('Items', trashLink(alias), folder && pastButton(scope, wideOnly), upload
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
			h('div', { class: 'toolbar' }, aliases.length > 1 && aliasSelect(aliases, alias, itemsHash),
				order.element, viewToggle(view, list),
				searchForm(folder ? 'Search by name in this folder' : 'Search by name', search,
					(wanted) => itemsHash(alias.kind, alias.name, folder, { search: wanted }))),
			crumbs(scope),
			upload?.element,
			order.notice,
			list.element,
			selectionBar(list, selection, itemActions(scope, aliases, list), signal),
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
 * The items of a scope, in the look and order of view.
 * @param {Scope} scope
 * @param {View} view
 * @returns {ListSource}
 */
const sourceOf = ({ alias, folder, search }, view) => ({
	page: (cursor, limit) =>
		get(['items', alias.kind, alias.name], {
			folder,
			search,
			cursor,
			limit,
			order: view.order === 'name' ? '' : view.order,
		}),
	look: (on) => (view.look === 'list' ? table(view.order, on) : grid()),
	nothing: () =>
		search ? empty('search', 'Nothing found', `No name here contains “${search}”.`)
			: empty('folder', 'Nothing here yet', folder ? 'This folder appears with its first item.'
				: 'Items appear here when they are uploaded.'),
});

/**
 * The link to the trash of an alias; for an editor also if it is off.
 * @param {Alias} alias
 */
const trashLink = ({ kind, name, trash }) =>
	may('restore') && (trash || mayAct())
	&& h('a', {
		class: 'button',
		href: trashHash(kind, name),
		'aria-label': 'Trash',
		title: 'Trash',
	}, icon('trash'), h('span', { class: 'wide-only' }, 'Trash'));

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
 * What the dialog of an item reports to the list behind it.
 * @param {Alias} alias
 * @param {Listing} list
 * @param {(filename: string) => void} follow
 * @returns {ItemOptions}
 */
const itemOptions = (alias, list, follow) => ({
	neighbour: list.neighbour,
	shown: follow,
	deleted: (filename, id) => {
		list.remove(filename);
		told(alias, `${filename} is deleted.`, id ? [{ id, filename }] : []);
	},
	added: () => list.load(),
	renamed: list.renamed,
	replaced: list.refresh,
});
