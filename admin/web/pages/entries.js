// @ts-check
// The entries of a list: folders, and items as images or as rows.
import { fill, h, visuallyHidden } from '../lib/dom.js';
import { size, typeName } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { folderOf, itemsHash, keyOf, maxShown, nameOf, previewOf, trashHash } from '../lib/links.js';
import { may } from '../lib/state.js';
import { time } from '../lib/ui.js';

const busyPause = 5000; // in milliseconds

const imageTypes = /^image\/(jpeg|png|gif|webp|avif)$/;
const smallest = 8 << 10; // bytes; smaller images are their own thumbnails
const mostKept = 2 << 20; // bytes; the trash has no thumbnails

// One entry of a list can be reached by Tab: see lib/roving.js.
const untabbed = { tabindex: '-1' };

export const folderList = () => h('ul', { class: 'folders', role: 'list', 'aria-label': 'Folders' });

/**
 * @param {Scope} scope
 * @param {string} name
 * @param {(name: string) => void} remove
 */
export const folderEntry = ({ alias, folder }, name, remove) =>
	h('li', { 'data-folder': name },
		h('a', { ...untabbed, href: itemsHash(alias.kind, alias.name, folder ? `${folder}/${name}` : name) },
			icon('folder'), h('span', null, name)), may('delete')
		&& h('button', {
			...untabbed,
			type: 'button',
			class: 'plain',
			title: 'Delete folder',
			'aria-label': `Delete folder ${name}`,
			onclick: () => remove(name),
		}, icon('trash')));

/**
 * The page of an item in its list.
 * @param {Scope} scope
 * @param {Item} item
 */
const hashOf = ({ alias, folder, search }, item) =>
	item.id ? trashHash(alias.kind, alias.name, { search, item: item.id })
		: itemsHash(alias.kind, alias.name, folder, { search, item: item.filename });

/**
 * The name of an item relative to the scope.
 * @param {Scope} scope
 * @param {Item} item
 */
const below = (
	{ folder, search },
	item,
) => (search ? item.filename.slice(folder ? folder.length + 1 : 0) : nameOf(item.filename));

/**
 * @param {Scope} scope
 * @param {Item} item
 * @param {boolean} selected
 */
const pick = (scope, item, selected) =>
	h('label', { class: 'pick' }, h('input', {
		...untabbed,
		type: 'checkbox',
		checked: selected,
		'aria-label': `Select ${below(scope, item)}`,
	}));

/** @param {boolean} selected */
const look = (selected) => (selected ? 'selected' : '');

/**
 * The mark of an item of a private alias.
 * @param {Alias} alias
 */
const lock = (alias) =>
	alias.private && h('span', { class: 'lock', title: 'Private' }, icon('lock'), visuallyHidden('Private'));

/** @returns {Look} */
export function grid() {
	const body = h('ul', { class: 'grid', role: 'list', 'aria-label': 'Items' });
	return {
		element: body,
		body,
		rowHeight: () => { // the image, up to two lines of the name, and one below
			const { gridTemplateColumns, rowGap, fontSize } = getComputedStyle(body);
			const height = Math.ceil(parseFloat(gridTemplateColumns) * 0.75 + parseFloat(fontSize) * 4.4);
			body.style.gridAutoRows = `${height}px`;
			return height + parseFloat(rowGap);
		},
		entry: (scope, item, selected) =>
			h('li', { 'data-item': item.filename, class: look(selected) },
				h('a', { ...untabbed, href: hashOf(scope, item) }, thumbnail(scope.alias, item),
					h('span', { class: 'name', title: nameOf(item.filename) }, below(scope, item))),
				h('p', { class: 'muted small-text' }, lock(scope.alias), size(item.size), ' · ',
					time(item.modified)), pick(scope, item, selected)),
	};
}

/** The columns by which a list can be ordered: the order of the first press, and the other one. */
const columns = { Name: ['name', '-name'], Size: ['-size', 'size'], Changed: ['-modified', 'modified'] };

/**
 * @param {string} order
 * @param {LookEvents} on
 */
export function table(order, on) {
	const heads = Object.entries(columns).map(([text, orders]) => {
		const at = orders.indexOf(order);
		return h('th', {
			scope: 'col',
			class: 'col-' + text.toLowerCase(),
			'aria-sort': at >= 0 && (order.startsWith('-') ? 'descending' : 'ascending'),
		}, h('button', {
			type: 'button',
			class: 'plain',
			'data-sort': text,
			onclick: () => on.sort(orders[at === 0 ? 1 : 0]),
		}, text, at >= 0 && icon(order.startsWith('-') ? 'expand' : 'collapse')));
	});
	return rows('Items', [...heads, h('th', { scope: 'col', class: 'col-type' }, 'Type')], on,
		(scope, item) => [
			[h('span', { title: nameOf(item.filename) }, below(scope, item)), lock(scope.alias)],
			h('td', { class: 'col-size' }, size(item.size)),
			h('td', { class: 'col-changed' }, time(item.modified)),
			h('td', { class: 'col-type' }, typeName(item.content_type)),
		]);
}

/**
 * The entries of the trash, of which several may have one name.
 * @param {LookEvents} on
 */
export const keptTable = (on) =>
	rows('Deleted items',
		[['Name', 'name'], ['Size', 'size'], ['Deleted', 'changed'], ['Gone for good', 'type']]
			.map(([text, column]) => h('th', { scope: 'col', class: `col-${column}` }, text)), on,
		(scope, item) => {
			const kept = /** @type {Kept} */ (item);
			return [
				h('span', { class: 'kept-name', title: kept.filename },
					h('span', null, nameOf(kept.filename)),
					h('span', { class: 'muted small-text' }, folderOf(kept.filename) || 'top folder',
						h('span', { class: 'phone-only' }, ', ', time(kept.removed)))),
				h('td', { class: 'col-size' }, size(kept.size)),
				h('td', { class: 'col-changed' }, time(kept.removed)),
				h('td', { class: 'col-type' }, time(kept.expires_at)),
			];
		});

/**
 * Items as rows. cells returns the name of an item, and the cells after it.
 * @param {string} label
 * @param {HTMLElement[]} heads
 * @param {LookEvents} on
 * @param {(scope: Scope, item: Item) => Child[]} cells
 * @returns {Look}
 */
function rows(label, heads, on, cells) {
	const body = h('tbody');
	let height = 52;
	const all = h('input', {
		type: 'checkbox',
		'aria-label': 'Select all',
		onchange: () => on.all(all.checked),
	});
	return {
		element: h('table', { class: 'items', 'aria-label': label },
			h('thead', null,
				h('tr', null,
					h('th', { scope: 'col', class: 'col-pick' }, h('label', { class: 'pick' }, all)), heads)),
			body),
		body,
		selected: (some, every) => {
			all.checked = every;
			all.indeterminate = some && !every;
		},
		rowHeight: () => {
			height = body.firstElementChild?.getBoundingClientRect().height || height;
			return height;
		},
		entry: (scope, item, selected) => {
			const [name, ...others] = cells(scope, item);
			return h('tr', { 'data-item': keyOf(item), class: look(selected) },
				h('td', { class: 'col-pick' }, pick(scope, item, selected)),
				h('th', { scope: 'row' },
					h('a', { ...untabbed, href: hashOf(scope, item) }, thumbnail(scope.alias, item, ''),
						name)), others);
		},
	};
}

/**
 * @param {Alias} alias
 * @param {Item} item
 * @param {string} [alt]
 */
export function thumbnail(alias, item, alt = `Preview of ${nameOf(item.filename)}`) {
	const box = h('span', { class: 'thumb' });
	const isDecoded = item.content_type !== 'image/avif' && !item.id; // by the server
	const most = item.id ? mostKept : isDecoded ? Infinity : maxShown;
	if (!imageTypes.test(item.content_type) || item.size > most)
		return fill(box, icon(item.content_type.startsWith('image/') ? 'items' : 'file'));
	const query = isDecoded && item.size > smallest ? { thumbnail: '1' } : undefined;
	/** @param {boolean} again whether to try again, because the server may be busy */
	const show = (again) =>
		fill(box, h('img', {
			src: previewOf(alias, item, query),
			alt,
			loading: 'lazy',
			decoding: 'async',
			onerror: () => {
				fill(box, icon('items'));
				if (again) setTimeout(() => box.isConnected && show(false), busyPause);
			},
		}));
	return show(true);
}
