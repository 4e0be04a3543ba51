// @ts-check
// The use of the storages and the last changes, for the health page.
import { h, rich, visuallyHidden } from '../lib/dom.js';
import { moment, plural, size } from '../lib/format.js';
import { driverIcon, icon } from '../lib/icons.js';
import { folderOf, itemsHash } from '../lib/links.js';
import { mayAct } from '../lib/state.js';
import { details, empty, facts, rowList, time } from '../lib/ui.js';

/**
 * The section on the use of the storages. Its heading has a button for editors that counts again.
 * @param {UsageAnswer} answer
 * @param {(event: Event) => void} again
 */
export function usageContent({ counting, storages }, again) {
	const aliases = storages.flatMap((storage) => storage.aliases);
	return [
		h('div', { class: 'page-head' }, h('h2', null, 'Usage'), mayAct() && aliases.length > 0
			&& h('button', {
				type: 'button',
				class: 'small',
				'data-key': 'count-again',
				'aria-disabled': counting && 'true',
				onclick: again,
			}, 'Count again')),
		aliases.length > 0 && statusLine(aliases),
		rowList('Usage', storages.map(storageRow)),
	];
}

/**
 * When the aliases were counted, or how far the running count is.
 * @param {AliasUsage[]} aliases
 */
function statusLine(aliases) {
	const running = aliases.find(({ state }) => state === 'counting');
	const waiting = aliases.filter(({ state }) => state === 'waiting').length;
	if (!running && !waiting) {
		const counts = aliases.map(({ counted }) => counted).filter((counted) => counted !== null);
		return h('p', { class: 'muted' }, counts.length > 0 ? ['Counted ', time(counts.sort()[0]), '.']
			: 'Not counted yet.');
	}
	const before = running && sum(running).objects;
	return h('div', { class: 'counting' }, h('progress', {
		'aria-label': 'Count',
		value: before ? Math.min(running.so_far / before, 1) : null,
	}), h('p', { class: 'muted' }, [
		running && `Counting ${titleOf(running)}: ${plural(running.so_far, 'object')} so far.`,
		waiting > 0 && `${plural(waiting, 'alias', 'aliases')} to go.`,
	].filter(Boolean).join(' ')));
}

/** @param {{kind: string, name: string}} alias */
const titleOf = ({ kind, name }) => `${name} (${kind === 'img' ? 'images' : 'files'})`;

/**
 * All objects of an alias.
 * @param {AliasUsage} usage
 */
function sum({ items, variants, renditions, trash }) {
	const all = [items, variants, renditions, trash];
	return {
		objects: all.reduce((n, { objects }) => n + objects, 0),
		bytes: all.reduce((n, { bytes }) => n + bytes, 0),
	};
}

/** @param {StorageUsage} storage */
function storageRow(storage) {
	const { name, driver_title: title, driver_icon: symbol, free, total, unfinished, aliases } = storage;
	const bytes = aliases.reduce((all, usage) => all + sum(usage).bytes, 0);
	const items = aliases.reduce((all, usage) => all + usage.items.objects, 0);
	const least = aliases.some((usage) => usage.at_least || usage.counted === null) ? 'at least ' : '';
	const known = aliases.some((usage) => usage.counted !== null);
	return h('li', { class: 'row' }, h('div', { class: 'row-icon' }, driverIcon(symbol)),
		h('div', { class: 'row-main' }, h('h3', null, name), h('p', { class: 'muted' }, title), facts({
			Items: known && least + items.toLocaleString('en'),
			Size: known && least + size(bytes),
			Free: free !== null && total !== null && `${size(free)} of ${size(total)}`,
			'Unfinished uploads': unfinished.objects > 0
				&& `${unfinished.objects.toLocaleString('en')} (${size(unfinished.bytes)})`,
		}, 'facts inline'), spaceMeter(storage), aliases.length === 0
			&& h('p', { class: 'muted' }, 'No alias uses it.')), aliases.length > 0
		&& usageTable(name, aliases, bytes));
}

/** @param {StorageUsage} storage */
function spaceMeter({ name, free, total }) {
	if (free === null || total === null) return null;
	const full = total * 0.9;
	return h('meter', {
		class: 'space',
		min: 0,
		max: total,
		low: full,
		high: full,
		optimum: 0,
		value: total - free,
		'aria-label': `Space in use at ${name}`,
	});
}

/**
 * @param {string} storage
 * @param {AliasUsage[]} aliases
 * @param {number} bytes of all of them
 */
function usageTable(storage, aliases, bytes) {
	return h('table', { class: 'usage' }, h('caption', { class: 'visually-hidden' }, `Aliases of ${storage}`),
		h('thead', null,
			h('tr', null,
				['Alias', 'Items', 'Size', 'Share'].map((title) => h('th', { scope: 'col' }, title)))),
		h('tbody', null, aliases.map((usage) => aliasRow(usage, bytes))));
}

/**
 * @param {AliasUsage} usage
 * @param {number} all the bytes of all aliases of the storage
 */
function aliasRow(usage, all) {
	const { kind, name, items, at_least: least, counted, message, detail } = usage;
	const { bytes } = sum(usage);
	const share = all > 0 ? bytes / all : 0;
	return h('tr', null,
		h('th', { scope: 'row' },
			h('a', { href: itemsHash(kind, name), 'data-key': `usage/${kind}/${name}` }, name),
			h('span', { class: 'muted' }, kind === 'img' ? ' images' : ' files'), extras(usage),
			message && h('p', { class: 'trouble' }, 'It could not be counted. ', rich(message)),
			details(detail, 'Details', `usage/${kind}/${name}/detail`)),
		counted === null ? h('td', { colspan: 3, class: 'muted' }, 'Not counted yet') : [
			h('td', null, atLeast(least, items.objects.toLocaleString('en'))),
			h('td', null, atLeast(least, size(bytes))),
			h('td', { class: 'share' },
				h('meter', { min: 0, max: 1, value: share, 'aria-label': `Share of ${titleOf(usage)}` }), ' ',
				h('span', null, percent(share))),
		]);
}

/** @param {AliasUsage} usage */
function extras({ variants, renditions, trash }) {
	const made = [
		variants.objects > 0 && plural(variants.objects, 'variant'),
		renditions.objects > 0 && plural(renditions.objects, 'rendition'),
	].filter(Boolean);
	const parts = [
		made.length > 0 && `${made.join(', ')} (${size(variants.bytes + renditions.bytes)})`,
		trash.objects > 0 && `${trash.objects.toLocaleString('en')} in the trash (${size(trash.bytes)})`,
	].filter(Boolean);
	return parts.length > 0 && h('p', { class: 'muted small-text' }, `and ${parts.join(', and ')}`);
}

/**
 * A number of a table, which may be too low.
 * @param {boolean} least
 * @param {string} text
 */
const atLeast = (least, text) =>
	least ? [visuallyHidden('at least '), h('span', { 'aria-hidden': 'true' }, '≥ '), text] : text;

/** @param {number} share */
const percent = (share) => (share > 0 && share < 0.01 ? '< 1 %' : `${Math.round(share * 100)} %`);

const shown = 20;

/**
 * The section on the last changes, the newest first.
 * @param {ChangesAnswer} answer
 * @param {UsageAnswer} usage
 */
export function changesContent({ since, changes }, { storages }) {
	const aliases = new Set(
		storages.flatMap((storage) => storage.aliases.map(({ kind, name }) => `${kind}/${name}`)),
	);
	const there = existing(changes, aliases);
	const rows = changes.map((change) => changeRow(change, there));
	const note = `Since ${moment(since)}, when Caddy was started, and at most 200 of items and 200 of the `
		+ 'configuration. The audit log has all, if it is kept.';
	return [h('h2', null, 'Last changes'), changes.length === 0
		? empty('items', 'No change yet',
			'Items that are stored, replaced, moved or deleted appear here, and changes of the configuration.')
		: rowList('Last changes', rows.slice(0, shown)), rows.length > shown
		&& h('details', { class: 'earlier', 'data-key': 'changes/earlier' },
			h('summary', null, `${plural(rows.length - shown, 'earlier change')}`),
			rowList('Earlier changes', rows.slice(shown))), h('p', { class: 'muted small-text' }, note)];
}

/**
 * The items of changes that exist still, by these and the aliases ("img/content").
 * @param {ItemChange[]} changes the newest first
 * @param {Set<string>} aliases
 */
export function existing(changes, aliases) {
	/** @type {Map<string, boolean>} */
	const items = new Map();
	/** @type {string[]} */
	const folders = [];
	/**
	 * @param {string} alias
	 * @param {string} filename
	 * @param {boolean} exists
	 */
	const note = (alias, filename, exists) => {
		const key = `${alias}/${filename}`;
		if (items.has(key)) return; // a later change has decided it
		items.set(key, exists && aliases.has(alias) && !folders.some((folder) => key.startsWith(folder)));
	};
	for (const { action, kind, alias, filename, to_alias, to, folder, result } of changes) {
		const from = `${kind}/${alias}`;
		if (to) note(`${kind}/${to_alias}`, to, true);
		if (folder && result === 'ok') folders.push(`${from}/${folder}/`);
		if (filename && action !== 'copy' && action !== 'terminate')
			note(from, filename, action === 'store' || action === 'replace');
	}
	return items;
}

/** @type {Record<string, string>} */
const actions = {
	add: 'Added',
	change: 'Changed',
	remove: 'Removed',
	store: 'Stored',
	replace: 'Replaced',
	delete: 'Deleted',
	move: 'Moved',
	copy: 'Copied',
	terminate: 'Ended the upload of',
};

/** @param {ItemChange} change of the configuration */
const entryRow = ({ action, section, name, options, ...change }) =>
	h('li', { class: 'row change' },
		h('p', null, h('strong', null, actions[action] ?? action), ` ${section} `,
			h('span', { class: 'path' }, name)),
		options && h('p', { class: 'muted small-text' }, options.replaceAll('_', ' ')),
		h('p', { class: 'muted small-text by' }, `${actorOf(change)}, `, time(change.time)));

/**
 * @param {ItemChange} change
 * @param {Map<string, boolean>} there
 */
function changeRow(change, there) {
	if (change.section) return entryRow(change);
	const { time: when, action, kind, alias, filename, to_alias: toAlias, to, folder, number, result } =
		change;
	/**
	 * @param {string} of
	 * @param {string} name
	 */
	const item = (of, name) =>
		action !== 'terminate' && there.get(`${kind}/${of}/${name}`)
			? h('a', {
				class: 'path',
				href: itemsHash(kind, of, folderOf(name), { item: name }),
				'data-key': `change/${when}/${of}/${name}`,
			}, name)
			: h('span', { class: 'path' }, name || 'an item without a name');
	const what = number ? [plural(number, 'item'), folder && [' in ', h('span', { class: 'path' }, folder)]]
		: item(alias, filename);
	return h('li', { class: 'row change' },
		h('p', null, h('strong', null, actions[action] ?? action), ' ', what, to && toAlias
			&& [visuallyHidden(' to '), h('span', { 'aria-hidden': 'true' }, ' → '), item(toAlias, to)],
			result !== 'ok' && h('span', { class: 'trouble' }, icon('down'), ` Not all of them: ${result}.`)),
		h('p', { class: 'muted small-text' }, [
			titleOf({ kind, name: alias }),
			toAlias && toAlias !== alias && ` → ${titleOf({ kind, name: toAlias })}`,
			change.size !== null && action !== 'delete' && `, ${size(change.size)}`,
		].filter(Boolean).join('')),
		h('p', { class: 'muted small-text by' }, `${actorOf(change)}, `, time(when)));
}

/**
 * Who made a change.
 * @param {Pick<ItemChange, 'origin' | 'account' | 'user'>} change
 */
function actorOf({ origin, account, user }) {
	if (origin === 'panel') return `${account} in the panel`;
	if (origin === 'admin') return 'Admin endpoint';
	if (origin === 'go') return account ? `${account} in Caddy` : 'Code in Caddy';
	return user ? `${user} (account ${account})` : `Account ${account}`;
}
