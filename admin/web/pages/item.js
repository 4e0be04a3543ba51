// @ts-check
// One item: preview, facts, texts to copy, changes. Arrow keys show its neighbours in the same dialog.
import { get, send } from '../lib/api.js';
import { fill, h, newId } from '../lib/dom.js';
import { moment, size, typeName } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { absolute, nameOf, parts } from '../lib/links.js';
import { signedUntil, snippets, usable } from '../lib/snippets.js';
import { may, mayAct, preference } from '../lib/state.js';
import { announce, busyWhile, confirm, copyField, facts, failed, openDialog } from '../lib/ui.js';
import { preview } from './preview.js';
import { rename } from './rename.js';
import { chooseFile, condition, explainKept, replace } from './replace.js';
import { backFor } from './restore.js';
import { versions } from './versions.js';

/** @type {Record<string, 1 | -1>} */
const steps = { ArrowLeft: -1, ArrowRight: 1 };
/** Where arrow keys have a meaning of their own. */
const usesArrows = 'input, select, textarea, video, audio, iframe, pre';

/**
 * Opens and returns the dialog of an item.
 * @param {Alias} alias
 * @param {string} filename of the first item
 * @param {ItemOptions} options
 */
export function itemDialog(alias, filename, options) {
	const shown = h('div', { class: 'item-part' });
	const content = h('div', { class: 'item-part' });
	const notice = h('p', { class: 'item-notice', role: 'status' });
	/** @param {string} text @param {1 | -1} step */
	const stepButton = (text, step) =>
		h('button', { type: 'button', onclick: () => go(step) }, step < 0 && icon('previous'), text,
			step > 0 && icon('next'));
	const links = h('div', { class: 'actions' });
	const next = stepButton('Next', 1);
	const body = h('div', { class: 'item' }, shown,
		h('div', { class: 'item-bar' },
			h('div', { class: 'actions', role: 'group', 'aria-label': 'Neighbours' },
				stepButton('Previous', -1), next), links), notice, content);
	const dialog = openDialog('', body, { wide: true });
	const title = /** @type {HTMLElement} */ (dialog.querySelector('h2'));
	let current = '';
	/** @param {string} wanted */
	const isShown = (wanted) => wanted === current && dialog.open;

	/**
	 * Shows an item, and a message about it.
	 * @param {string} wanted
	 * @param {string} [message]
	 */
	async function show(wanted, message = '') {
		current = wanted;
		title.textContent ||= nameOf(wanted);
		body.setAttribute('aria-busy', 'true');
		let parted;
		try {
			const path = [alias.kind, alias.name, ...parts(wanted)];
			const [{ result: [item] }, more] = await Promise.all([get(['items', ...path]),
				get(['facts', ...path])]);
			if (!isShown(wanted)) return;
			parted = partsOf({ ...item, ...more });
		} catch (error) {
			if (!isShown(wanted)) return;
			parted = { shown: null, links: null, content: failed(error, () => show(wanted)) };
		}
		title.textContent = nameOf(wanted);
		notice.textContent = message;
		const hadFocus = [shown, links, content].some((part) => part.contains(document.activeElement));
		fill(shown, parted.shown);
		fill(links, parted.links);
		fill(content, parted.content);
		body.removeAttribute('aria-busy');
		if (hadFocus) next.focus();
	}

	/** @param {Item} item */
	function partsOf(item) {
		const pixels = h('span', null, pixelsOf(item.sizes?.find(({ rendition }) => !rendition)));
		const time = h('span');
		return {
			shown: preview(alias, item, (found) => {
				pixels.textContent ||= pixelsOf(found);
				time.textContent = playingTime(found.duration);
			}),
			links: [openLink(alias, item, item.full_path), downloadLink(alias, item)],
			content: [details(alias, item, changes(item), { pixels, time }),
				versions(alias, item.filename, (back) => broughtBack(item, back))],
		};
	}

	/** @param {1 | -1} step */
	async function go(step) {
		const from = current;
		const wanted = await options.neighbour(from, step);
		if (!isShown(from)) return; // by another key meanwhile
		if (wanted === '') {
			announce(`There is no ${step > 0 ? 'next' : 'previous'} item in the list.`);
			return;
		}
		options.shown(wanted);
		announce(wanted, { visible: false });
		show(wanted);
	}

	/**
	 * The buttons that change an item.
	 * @param {Item} item
	 */
	function changes(item) {
		/** @param {string} text @param {(button: HTMLElement) => any} act @param {string} [look] */
		const button = (text, act, look) =>
			h('button', { type: 'button', class: look, onclick: (event) => act(event.currentTarget) }, text);
		return h('div', { class: 'actions' }, [
			may('move')
			&& button('Rename',
				(self) => change(self, 'The item was not renamed', item, () => renameIt(item))),
			may('replace')
			&& button('Replace',
				(self) => change(self, 'The item was not replaced', item, () => replaceIt(item))),
			may('delete')
			&& button('Delete',
				(self) => change(self, 'The item was not deleted', item, () => deleteIt(item)), 'danger'),
		]);
	}

	/**
	 * Runs a change of an item. If the item is another one by now, that is shown instead.
	 * @param {HTMLElement} button
	 * @param {string} failure
	 * @param {Item} item
	 * @param {() => Promise<void>} work
	 */
	const change = (button, failure, item, work) =>
		busyWhile(button, failure, () =>
			work().catch(async (error) => {
				if (error.status !== 412) throw error;
				await changed(item, `${failure}: somebody else has changed it. This is the new one.`);
			}));

	/**
	 * Shows an item that has changed, unless the dialog shows another one or is closed by now.
	 * @param {Item} item
	 * @param {string} message
	 */
	async function changed({ filename }, message) {
		options.replaced(filename);
		if (isShown(filename)) await show(filename, message);
		else announce(message);
	}

	/** @param {Item} item */
	async function renameIt(item) {
		const filename = await rename(alias, item);
		if (!filename) return;
		const message = `Renamed to ${filename}. The old address no longer works.`;
		options.renamed(item.filename, filename);
		if (!isShown(item.filename)) {
			announce(message);
			return;
		}
		options.shown(filename);
		await show(filename, message);
	}

	/** @param {Item} item */
	async function replaceIt(item) {
		if (!alias.overwrite) {
			await explainKept(alias);
			return;
		}
		const file = await chooseFile(item);
		if (file) await changed(item, await replace(alias, item, file));
	}

	/**
	 * An earlier version of an item is back, in its place or under another name.
	 * @param {Item} item
	 * @param {Restored} back
	 */
	async function broughtBack(item, back) {
		if (back.filename === item.filename) {
			await changed(item, 'The earlier version is back. The one before is among the earlier versions.');
			return;
		}
		options.added();
		const message = `The earlier version is back as ${nameOf(back.filename)}.`;
		if (isShown(item.filename)) notice.textContent = message;
		announce(message, { visible: !isShown(item.filename) });
	}

	/** @param {Item} item */
	async function deleteIt(item) {
		const more = [item.webp && 'WebP copy', item.renditions && 'other sizes'].filter(Boolean).join(
			' and ',
		);
		const text = `It is removed${more && `, with its ${more}`}, and its address no longer works. ${
			backFor(alias, 1)
		}`;
		if (!await confirm(`Delete “${nameOf(item.filename)}”?`, h('p', null, text), 'Delete')) return;
		const { body: { trash } } = await send('DELETE', ['items', alias.kind, alias.name,
			...parts(item.filename)], {
			etag: condition(alias, item),
		});
		const report = () => options.deleted(item.filename, trash);
		if (!isShown(item.filename)) return report();
		dialog.addEventListener('close', report); // after the list has the focus again
		dialog.close();
		return undefined;
	}

	dialog.addEventListener('keydown', (event) => {
		const step = steps[event.key];
		const target = /** @type {HTMLElement} */ (event.target);
		if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey
			|| target.closest(usesArrows))
			return;
		event.preventDefault();
		go(step);
	});
	show(filename);
	return dialog;
}

/**
 * The facts of an item, texts to copy, and the buttons that change it.
 * @param {Alias} alias
 * @param {Item} item
 * @param {Child} changes
 * @param {{pixels: HTMLElement, time: HTMLElement}} measured filled when they are known
 */
function details(alias, item, changes, { pixels, time }) {
	const until = signedUntil(item);
	return [
		facts({
			Size: size(item.size),
			Pixels: /^(image|video)\/(?!svg)/.test(item.content_type) && pixels,
			Length: /^(video|audio)\//.test(item.content_type) && time,
			Changed: item.modified && moment(item.modified),
			Type: typeName(item.content_type),
		}, 'facts inline'),
		changes,
		alias.private && !until
			? h('p', { class: 'notice' }, icon('lock'),
				`This item is private. Its address opens only if it is signed, which ${
					may('sign') ? 'does not work now. Try again later.' : 'your user may not do.'
				}`)
			: copyField(until ? `Signed address, until ${moment(until)}` : 'Address',
				usable(item, item.full_path)),
		copyAs(alias, item),
		until
		&& h('p', { class: 'help' },
			`A text with a signed address shows the item until ${moment(until)}, and no longer.`),
		item.webp
		&& copyField('WebP copy', usable(item, item.webp),
			openLink(alias, item, item.webp, 'Open WebP copy')),
		item.renditions && renditions(alias, item),
		copyField('Folder and name', item.filename),
		alias.private
		&& copyField('Address without signature', absolute(item.full_path)),
	];
}

/**
 * One of the texts to copy, chosen by a select that remembers the choice.
 * @param {Alias} alias
 * @param {Item} item
 */
function copyAs(alias, item) {
	const id = newId('copy-as');
	const alt = h('input', { id: id + '-alt', type: 'text', autocomplete: 'off', oninput: () => show() });
	const field = h('div');
	const texts = () => {
		const { 'Template function': template, ...others } = snippets(alias, item, alt.value);
		return mayAct() ? { ...others, 'Template function': template } : others;
	};
	const titles = Object.keys(texts());
	if (titles.length === 0) return null;
	const chosen = preference('copy-as') ?? '';
	const select = h('select', {
		id,
		onchange: () => {
			preference('copy-as', select.value);
			show();
		},
	}, titles.map((title) => h('option', { selected: title === chosen }, title)));
	const altTool = h('div', { class: 'tool grow' }, h('label', { for: alt.id }, 'Alternative text'), alt);
	function show() {
		altTool.hidden = alias.kind !== 'img' || !/^(HTML|Markdown)/.test(select.value);
		fill(field, copyField(select.value, texts()[select.value]));
	}
	show();
	return h('div', { class: 'copy-as' },
		h('div', { class: 'toolbar' },
			h('div', { class: 'tool' }, h('label', { for: id }, 'Copy as'), select), altTool), field);
}

/**
 * The size of an image as "640 × 480", '' if it is unknown.
 * @param {{width?: number, height?: number}} [image]
 */
const pixelsOf = ({ width, height } = {}) => (width ? `${width} × ${height}` : '');

/**
 * A duration as "1:05", '' if it is unknown.
 * @param {number} [seconds]
 */
function playingTime(seconds) {
	if (seconds === undefined || !Number.isFinite(seconds)) return '';
	const whole = Math.round(seconds);
	return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/**
 * @param {Alias} alias
 * @param {Item} item
 */
function renditions(alias, item) {
	const list = item.sizes?.filter(({ rendition }) => rendition)
		?? Object.entries(item.renditions ?? {}).map(([rendition, address]) => ({ rendition, address }));
	return h('details', null,
		h('summary', null, `Other sizes: ${list.map(({ rendition }) => rendition).join(', ')}`),
		list.map(({ rendition, address, ...pixels }) =>
			copyField([rendition, pixelsOf(pixels)].filter(Boolean).join(', '), usable(item, address),
				openLink(alias, item, address, `Open ${rendition}`))
		));
}

/**
 * A link that opens an address of an item; null if a private one cannot be signed.
 * @param {Alias} alias
 * @param {Item} item
 * @param {string} address
 * @param {string} [label]
 */
const openLink = (alias, item, address, label) =>
	alias.private && !item.query ? null : h('a', {
		class: 'button',
		href: usable(item, address),
		target: '_blank',
		rel: 'noopener noreferrer',
		'aria-label': label,
	}, 'Open');

/**
 * A link that downloads an item. Browsers would only open an item of another host.
 * @param {Alias} alias
 * @param {Item} item
 */
function downloadLink(alias, item) {
	const link = openLink(alias, item, item.full_path);
	if (link?.origin !== location.origin) return null;
	link.download = nameOf(item.filename);
	fill(link, 'Download');
	return link;
}
