// @ts-check
// One storage: adding, changing, testing it.
import { get, send } from '../lib/api.js';
import { fill, h, newId, rich } from '../lib/dom.js';
import { entryForm, nameField, readEntry, removeButton, section } from '../lib/entry.js';
import { optionFields } from '../lib/form.js';
import { firstSentence } from '../lib/format.js';
import { driverIcon } from '../lib/icons.js';
import { nameWords, validName } from '../lib/names.js';
import { showProbe } from '../lib/probe.js';
import { mayConfigure } from '../lib/state.js';
import { badge, details, facts, guarantees, listLink, once, pageHead, settings, time } from '../lib/ui.js';
import { askHostKey } from './hostkey.js';

/**
 * @param {string} name
 * @param {AbortSignal} signal
 * @returns {Promise<Page>}
 */
export async function storagePage(name, signal) {
	const isNew = name === '';
	if (isNew && !mayConfigure())
		return {
			title: 'Add storage',
			content: [pageHead('Add storage'), h('p', null, 'The configuration is read-only.')],
		};
	const [kinds, stored] = await Promise.all([
		get(['kinds'], {}, signal),
		isNew ? null : get(['storages', name], {}, signal),
	]);
	if (stored && !mayConfigure()) return { title: name, content: readOnly(stored) };
	if (stored && !kinds.drivers[stored.driver])
		return {
			title: name,
			content: [...readOnly(stored),
				h('p', { class: 'notice' },
					'This driver does not describe its options: edit the storage in the configuration.')],
		};
	const { body: entry, etag } = await readEntry('storages', name, signal);
	return { title: isNew ? 'Add storage' : name, content: editor(name, kinds, stored, entry, etag) };
}

/**
 * @param {string} name
 * @param {any} kinds
 * @param {Stored | null} stored
 * @param {Entry} entry
 * @param {string | null} etag
 */
function editor(name, kinds, stored, entry, etag) {
	const result = h('div', {
		class: 'probe card',
		hidden: true,
		role: 'region',
		'aria-label': 'Result of the test',
	});
	const test = h('button', { type: 'button', onclick: () => once(test, () => probe(form, name, result)) },
		'Test');
	const form = entryForm({
		section: 'storages',
		what: 'storage',
		name,
		current: entry,
		etag,
		back: '#/storages',
		tools: test,
		build: (current, isNew) => build(kinds, current, isNew),
	});
	return [
		listLink('Storages'),
		pageHead(name || 'Add storage', stored && !stored.implicit && removeStorage(stored, () => {
			location.hash = '#/storages';
		})),
		stored && status(stored),
		stored?.implicit
		&& h('p', { class: 'notice' },
			'This storage is built in: it exists until another one is configured. ',
			'Saving adds it to the configuration.'),
		form.element,
		result,
	];
}

/**
 * The button that removes a storage; removed is called after that.
 * @param {Stored} storage
 * @param {() => void} removed
 */
export const removeStorage = ({ name, used_by: users }, removed) =>
	removeButton({
		section: 'storages',
		name,
		users,
		what: 'storage',
		warning: 'It is removed from the configuration. Its items stay where they are.',
	}, removed);

/**
 * The users of a storage, as links.
 * @param {User[]} users
 */
export function usedBy(users) {
	if (users.length === 0) return h('p', { class: 'muted' }, 'Not used by any alias');
	return h('p', null, h('span', { class: 'muted' }, 'Used by '), users.map(({ kind, alias }, i) => [
		i > 0 && ', ',
		h('a', { href: `#/aliases/${kind}/${encodeURIComponent(alias ?? '')}` }, alias),
		h('span', { class: 'muted' }, kind === 'img' ? ' (images)' : ' (files)'),
	]));
}

/** @param {Stored} storage */
const status = ({ health = {}, used_by: users = [] }) =>
	h('div', { class: 'status-line' }, badge(health.state), usedBy(users));

/**
 * @param {ReturnType<typeof entryForm>} form
 * @param {string} name
 * @param {HTMLElement} result
 */
async function probe(form, name, result) {
	const stored = name !== '' && !form.isDirty();
	const input = stored ? null : form.input(({ path }) => path.startsWith('driver.'));
	if (!stored && !input) return;
	const error = await showProbe(result, name || 'The storage', async () => {
		if (!input) return (await send('POST', ['storages', name, 'probe'], { body: {} })).body;
		const { value, secrets } = input.body;
		return (await send('POST', ['probe'], {
			body: { driver: value.driver, secrets, keep: name || undefined },
		})).body;
	});
	const field = error?.option && form.fieldOf(error.option);
	if (field) form.complain([{ field, message: error.message }], 'The test could not be run');
	else result.scrollIntoView({ block: 'nearest' });
}

/**
 * The fields of a storage. Input for a driver is kept while another one is shown.
 * @param {any} kinds
 * @param {Entry} current
 * @param {boolean} isNew
 */
function build(kinds, current, isNew) {
	const names = Object.keys(kinds.drivers).sort((a, b) => order(kinds.drivers[a], kinds.drivers[b]));
	const made = new Map();
	const saved = current.value.driver?.name;
	let chosen = saved ?? '';
	const options = h('div');
	const name = isNew
		? nameField({
			name: 'name',
			example: 'archive',
			help: 'The name by which aliases refer to it. It cannot be changed later.',
		}, validName, nameWords) : null;
	const naming = optionFields(kinds.storage.options, { value: current.value, secrets: current.secrets });
	const cards = chooser(names, kinds.drivers, () => chosen, (driver) => {
		chosen = driver;
		show();
	});

	function driver() {
		if (!made.has(chosen)) {
			const same = chosen === saved;
			const parts = optionFields(kinds.drivers[chosen].options, {
				prefix: 'driver.',
				value: same ? current.value.driver : {},
				secrets: same ? current.secrets : [],
			});
			const keys = kinds.drivers[chosen].host_keys
				&& parts.fields.find(({ path }) => path === 'driver.host_key');
			if (keys) keys.control.after(askHostKey(chosen, parts.fields, keys));
			made.set(chosen, parts);
		}
		return made.get(chosen);
	}
	function show() {
		if (!kinds.drivers[chosen]) return;
		fill(options,
			section(kinds.drivers[chosen].title, about(kinds.drivers[chosen].help), driver().element));
	}
	show();
	return {
		element: h('div', { class: 'sections' }, name && section('', name.element),
			isNew ? section('Driver', cards.element)
				: h('details', { class: 'card' },
					h('summary', null, `Driver: ${kinds.drivers[saved]?.title ?? ''}`), cards.element),
			options, section('Naming rules', naming.element)),
		fields: () => [name, cards, ...(chosen ? driver().fields : []), ...naming.fields].filter(Boolean),
	};
}

/**
 * @param {Driver} a
 * @param {Driver} b
 */
const order = (a, b) => b.rank - a.rank || a.title.localeCompare(b.title);

/**
 * The help of a driver after the sentence on its card.
 * @param {string} [help]
 */
function about(help = '') {
	const rest = help.slice(firstSentence(help).length).trim();
	return rest
		&& h('details', { class: 'about' }, h('summary', null, 'About this driver'),
			rest.split('\n\n').map((paragraph) => h('p', null, rich(paragraph))));
}

/**
 * @param {string[]} names
 * @param {Record<string, Driver>} drivers
 * @param {() => string} chosen
 * @param {(driver: string) => void} choose
 * @returns {Field}
 */
function chooser(names, drivers, chosen, choose) {
	const group = newId('driver');
	const inputs = names.map((name) =>
		h('input', {
			type: 'radio',
			name: group,
			value: name,
			id: newId('driver'),
			checked: chosen() === name,
			'aria-describedby': `${group}-${name}`,
			onchange: () => choose(name),
		})
	);
	const error = h('p', { class: 'field-error', hidden: true, id: group + '-error' });
	const element = h('div', { role: 'radiogroup', 'aria-label': 'Driver', class: 'cards' },
		names.map((name, i) =>
			h('div', { class: 'choice' }, inputs[i],
				h('label', { for: inputs[i].id }, driverIcon(drivers[name].icon), drivers[name].title),
				h('p', { id: `${group}-${name}` }, rich(firstSentence(drivers[name].help))))
		));
	return {
		path: 'driver.name',
		name: 'Driver',
		element: h('div', null, element, error),
		control: inputs[0],
		read: () => {
			if (!chosen()) throw new Error('Choose a driver.');
			return chosen();
		},
		mark: (message) => {
			error.hidden = !message;
			error.textContent = message;
		},
	};
}

/** @param {Stored} stored */
function readOnly(stored) {
	const { name, driver_title: title, settings: options = {}, health = {}, sub_folder_format: format,
		overwrite_strategy: strategy, sanitize } = stored;
	return [
		listLink('Storages'),
		pageHead(name),
		status(stored),
		section('Health',
			facts({ Checked: time(health.checked), Message: health.message && rich(health.message) }),
			details(health.detail), guarantees(stored.guarantees)),
		section('Settings', facts({
			Driver: title,
			...settings(options),
			'Sub folder format': format || 'year, month and day',
			'Overwrite strategy': strategy,
			Sanitize: sanitize === undefined ? null : sanitize ? 'on' : 'off',
		})),
	];
}
