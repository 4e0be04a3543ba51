// @ts-check
// The trash of an alias: what was deleted or replaced, and can be had back.
import { get } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { span } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { itemsHash, trashHash } from '../lib/links.js';
import { may, mayAct } from '../lib/state.js';
import { empty, once, pageHead } from '../lib/ui.js';
import { selectionBar } from './bar.js';
import { keptTable } from './entries.js';
import { emptyTrash, keptDialog, purge, restoreEntries } from './kept.js';
import { listing } from './listing.js';
import { opened } from './opened.js';
import { pastButton } from './past.js';
import { mayPurge } from './restore.js';
import { newSelection } from './selection.js';
import { aliasSelect, searchForm } from './toolbar.js';

/**
 * The page of the trash of an alias.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function trash({ segments: [kind, name], query, first, signal }) {
	/** @type {{aliases: Alias[]}} */
	const { aliases } = first ?? await get(['aliases'], {}, signal);
	const alias = aliases.find((each) => each.kind === kind && each.name === name);
	if (!alias) throw new Error(`There is no library called “${name ?? ''}” here.`);
	if (!may('restore')) throw new Error('Your user may not see the trash. Ask the administrator.');
	const title = `Trash of ${alias.name}`;
	return alias.trash
		? kept({ alias, folder: '', search: query.search ?? '' }, aliases, query.item ?? '', signal)
		: { title, content: [...head(alias, aliases, '', null), off(alias)] };
}

/**
 * The heading, the tools and the way back.
 * @param {Alias} alias
 * @param {Alias[]} aliases
 * @param {string} search
 * @param {Child} action
 */
const head = (alias, aliases, search, action) => [
	h('nav', { class: 'crumbs', 'aria-label': 'Breadcrumb' },
		h('a', { href: itemsHash(alias.kind, alias.name) }, `Items of ${alias.name}`)),
	pageHead('Trash', action),
	alias.trash
	&& h('p', { class: 'lead' }, `What is deleted or replaced can be had back for ${span(alias.trash)}.`,
		' What you restore stays here until then too.',
		alias.trash_locked && ' Nobody can delete it for good before.'),
	h('div', { class: 'toolbar' }, aliases.length > 1
		&& aliasSelect(aliases, alias, (kind, name) => trashHash(kind, name)), alias.trash
		&& searchForm('Search by name or folder', search,
			(wanted) => trashHash(alias.kind, alias.name, { search: wanted }))),
];

/** @param {Alias} alias */
const off = ({ name }) =>
	mayAct()
		? empty('trash', `“${name}” has no trash`,
			'What is deleted here is gone. `trash 14d` in the alias keeps it for 14 days.',
			h('a', { class: 'button', href: '#/aliases' }, 'Aliases'))
		: empty('trash', `“${name}” has no trash`,
			'What is deleted here is gone. The administrator can change that.');

/**
 * @param {Scope} scope
 * @param {Alias[]} aliases
 * @param {string} item
 * @param {AbortSignal} signal
 * @returns {Page}
 */
function kept(scope, aliases, item, signal) {
	const { alias, search } = scope;
	const selection = newSelection();
	/** @type {ListSource} */
	const source = {
		page: (cursor, limit) =>
			get(['items', alias.kind, alias.name], { trash: '1', search, cursor, limit }),
		look: keptTable,
		nothing: (removed) =>
			removed
				? empty('trash', 'Nothing left here',
					'What you restored stays in the trash until its time. Load the page again to see it.')
				: search
				? empty('search', 'Nothing found', `No name or folder in the trash contains “${search}”.`)
				: empty('trash', 'The trash is empty', 'What is deleted or replaced appears here.'),
	};
	const emptyButton = mayPurge(alias) && h('button', {
		type: 'button',
		class: 'quiet-danger',
		hidden: true,
		onclick: (event) => once(event.currentTarget, () => emptyTrash(alias, list)),
	}, icon('trash'), 'Empty the trash');
	const list = listing(scope, source, { look: 'list', order: 'name' }, selection, {
		removeFolder: () => {},
		unordered: () => {},
		sort: () => {},
		filled: (is) => {
			if (emptyButton) emptyButton.hidden = !is && !search;
		},
	}, signal);
	/** @type {(items: Item[]) => KeptName[]} */
	const names = (items) => items.map(({ id = '', filename }) => ({ id, filename }));
	/** @type {(items: Item[]) => any} */
	const remove = (items) => purge(alias, names(items), list);
	const panel = opened(list, {
		address: (id = '') => trashHash(alias.kind, alias.name, { search, item: id }),
		open: (id) => keptDialog(alias, id, list),
	}, signal);
	/** @type {BarAction[]} */
	const actions = [
		{ name: 'restore', text: 'Restore', act: (items) => restoreEntries(alias, names(items), list) },
	];
	if (mayPurge(alias))
		actions.push({ name: 'trash', text: 'Delete for good', act: remove, look: 'quiet-danger' });
	list.load(history.state?.list);
	panel.show(item);
	return {
		title: `Trash of ${alias.name}`,
		content: [
			...head(alias, aliases, search, [pastButton(scope), emptyButton]),
			list.element,
			selectionBar(list, selection, { actions, remove: mayPurge(alias) && remove }, signal),
		],
		update: ({ segments, query }) => { // in the same list only an entry is opened or closed
			if (segments[0] !== alias.kind || segments[1] !== alias.name || (query.search ?? '') !== search)
				return false;
			panel.show(query.item ?? '', true);
			return true;
		},
	};
}
