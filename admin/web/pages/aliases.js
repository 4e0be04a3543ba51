// @ts-check
// Aliases of images and of files.
import { get } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { entryForm, nameField, readEntry, removeButton, section } from '../lib/entry.js';
import { optionFields } from '../lib/form.js';
import { kindTitle, plural, sectionOf, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { absolute } from '../lib/links.js';
import { nameWords, validName } from '../lib/names.js';
import { mayConfigure } from '../lib/state.js';
import { confirm, copyField, empty, facts, listLink, pageHead, rowList, settings } from '../lib/ui.js';

/**
 * The page of all aliases, or of one.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function aliases({ segments, query, signal, reload }) {
	if (query.add && mayConfigure())
		return editPage(segments[0] === 'file' ? 'file' : 'img', '', null, signal);
	/** @type {{aliases: Alias[]}} */
	const { aliases: list } = await get(['aliases'], {}, signal);
	if (segments.length > 1) {
		const found = list.find(({ kind, name }) => kind === segments[0] && name === segments[1]);
		if (!found) throw new Error(`There is no ${kindTitle(segments[0])} called “${segments[1]}”.`);
		return mayConfigure() ? editPage(found.kind, found.name, found, signal)
			: { title: found.name, content: readOnly(found) };
	}
	return {
		title: 'Aliases',
		content: [
			pageHead('Aliases'),
			h('p', { class: 'lead' },
				'Names that uploads are sent to. Each belongs to images or to files and points at a storage.'),
			group('Images', 'img', list, reload),
			group('Files', 'file', list, reload),
		],
	};
}

/**
 * @param {string} title
 * @param {Kind} kind
 * @param {Alias[]} all
 * @param {() => void} reload
 */
function group(title, kind, all, reload) {
	const list = all.filter((alias) => alias.kind === kind);
	const add = mayConfigure()
		&& h('a', { class: 'button', href: `#/aliases/${kind}?add=1` }, icon('plus'),
			`Add ${kindTitle(kind)}`);
	return h('section', { 'aria-label': title },
		h('div', { class: 'page-head' }, h('h2', null, title), h('div', { class: 'actions' }, add)),
		list.length === 0
			? empty(kind === 'img' ? 'items' : 'file', `No ${kindTitle(kind)}`,
				'Uploads are refused until one exists.')
			: rowList(title, list.map((alias) => row(alias, reload))));
}

/**
 * @param {Alias} alias
 * @param {() => void} reload
 */
function row(alias, reload) {
	const { kind, name, storage, address, implicit } = alias;
	const own = `${kind}/${encodeURIComponent(name)}`;
	return h('li', { class: 'row' }, h('div', { class: 'row-icon' }, icon(kind === 'img' ? 'items' : 'file')),
		h('div', { class: 'row-main' },
			h('h3', null, h('a', { href: `#/aliases/${own}` }, name),
				implicit && h('span', { class: 'tag' }, 'built in'),
				alias.private && h('span', { class: 'tag' }, 'private')),
			h('p', { class: 'path' }, absolute(address)),
			h('p', null, h('span', { class: 'muted' }, 'In '),
				h('a', { href: `#/storages/${encodeURIComponent(storage)}` }, storage),
				h('span', { class: 'muted' }, ` · up to ${size(alias.max_size)}`),
				alias.webp && h('span', { class: 'muted' }, ' · WebP variants'),
				alias.overwrite && h('span', { class: 'muted' }, ' · overwrites'))),
		h('div', { class: 'row-actions' },
			h('a', { class: 'button', href: `#/items/${own}`, 'aria-label': `Items of ${name}` }, 'Items'),
			mayConfigure()
				&& h('a', { class: 'button', href: `#/aliases/${own}`, 'aria-label': `Edit ${name}` },
					'Edit'), mayConfigure() && !implicit && removeAlias(kind, name, reload)));
}

/**
 * @param {Kind} kind
 * @param {string} name
 * @param {() => void} removed
 */
const removeAlias = (kind, name, removed) =>
	removeButton({
		section: sectionOf(kind),
		name,
		what: kindTitle(kind),
		warning: 'Uploads to it will be refused, and its public addresses will no longer work. '
			+ 'Its items stay in their storage.',
	}, removed);

/**
 * @param {Kind} kind
 * @param {string} name
 * @param {Alias | null} alias
 * @param {AbortSignal} signal
 * @returns {Promise<Page>}
 */
async function editPage(kind, name, alias, signal) {
	const what = kindTitle(kind);
	const [kinds, { storages }, { body: entry, etag }] = await Promise.all([
		get(['kinds'], {}, signal),
		get(['storages'], {}, signal),
		readEntry(sectionOf(kind), name, signal),
	]);
	const words = storages.map((/** @type {Stored} */ storage) => storage.name);
	const options = kinds[kind === 'img' ? 'image_alias' : 'file_alias'].options
		.map((
			/** @type {Option} */ option,
		) => (option.name === 'storage' ? { ...option, type: 'word', words, names: true } : option));
	const form = entryForm({
		section: sectionOf(kind),
		what,
		name,
		current: entry,
		etag,
		back: '#/aliases',
		agrees: async (value) => !alias || await mayHide(alias, entry.value, value, words),
		build: (current, isNew) => build(options, current, isNew, what),
	});
	const title = name || `Add ${what}`;
	return {
		title,
		content: [
			listLink('Aliases'),
			pageHead(title, alias && !alias.implicit && removeAlias(kind, name, () => {
				location.hash = '#/aliases';
			})),
			alias && copyField('Public address', absolute(alias.address)),
			alias?.implicit
			&& h('p', { class: 'notice' },
				'This alias is built in: it exists until another one is configured. ',
				'Saving adds it to the configuration.'),
			form.element,
		],
	};
}

/**
 * Asks before an alias gets another place for its items, because those that it has would vanish from
 * their addresses and from the panel. Returns whether to go on.
 * @param {Alias} alias
 * @param {Record<string, any>} before its options
 * @param {Record<string, any>} value its options as they will be
 * @param {string[]} storages
 */
async function mayHide(alias, before, value, storages) {
	const { kind, name } = alias;
	const storageOf = (/** @type {Record<string, any>} */ options) =>
		options.storage ?? (storages.includes('default') ? 'default' : storages[0]);
	const folderOf = (/** @type {Record<string, any>} */ options) =>
		(options.prefix ?? `${kind}/${name}`).replace(/^\/+|\/+$/g, '');
	const storage = storageOf(value), moved = storage !== storageOf(before);
	if (!moved && folderOf(value) === folderOf(before)) return true;
	const usage = await countedUsage(kind, name);
	if (usage?.counted && usage.items.objects === 0 && !usage.at_least) return true;
	const items = usage?.counted
		? `${usage.at_least ? 'at least ' : ''}${plural(usage.items.objects, 'item')}`
		: 'all items';
	const command = `caddy media copy ${alias.storage} ${storage} --alias ${kind}/${name}`;
	return await confirm(`Hide ${items} of “${name}”?`, [
		h('p', null, `They stay where they are: in “${alias.storage}”, below ${alias.prefix || '/'}. `
			+ 'Their addresses will be answered with 404, and this panel will not show them.'),
		moved
			? [h('p', null, 'To take them along, copy them first, and once more afterwards:'),
				copyField('Command', command)]
			: h('p', null, 'To take them along, move the folder in the storage first.'),
	], 'Save and hide them');
}

/**
 * The usage of an alias, with its count if that is there within two seconds.
 * @param {Kind} kind
 * @param {string} name
 */
async function countedUsage(kind, name) {
	for (let tries = 5;; tries--) {
		/** @type {UsageAnswer} */
		const { storages } = await get(['usage']);
		const usage = storages.flatMap(({ aliases }) => aliases)
			.find((each) => each.kind === kind && each.name === name);
		if (usage?.counted || !usage || tries === 0) return usage;
		await new Promise((resolve) => setTimeout(resolve, 400));
	}
}

/**
 * @param {Option[]} options
 * @param {Entry} current
 * @param {boolean} isNew
 * @param {string} what
 */
function build(options, current, isNew, what) {
	const name = isNew
		? nameField({
			name: 'name',
			example: 'photos',
			help: 'A part of the public address. It cannot be changed later.',
		}, validName, nameWords) : null;
	const made = optionFields(options, { value: current.value, secrets: current.secrets });
	return {
		element: h('div', { class: 'sections' }, name && section('', name.element),
			section(`Options of the ${what}`, made.element)),
		fields: () => (name ? [name, ...made.fields] : made.fields),
	};
}

/** @param {Alias} alias */
function readOnly(alias) {
	return [
		listLink('Aliases'),
		pageHead(alias.name),
		copyField('Public address', absolute(alias.address)),
		section('Settings', facts({
			Storage: alias.storage,
			Prefix: alias.prefix || '/',
			'Largest item': size(alias.max_size),
			Extensions: alias.extensions?.join(', '),
			Overwrite: alias.overwrite ? 'on' : 'off',
			Sanitize: alias.sanitize ? 'on' : 'off',
			...settings(alias.settings, ['storage', 'prefix', 'max_size', 'extensions']),
		})),
	];
}
