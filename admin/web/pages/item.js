// @ts-check
// One item: preview, facts, snippets, deletion.
import { get, send } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { escaped, moment, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { absolute, parts, previewOf } from '../lib/links.js';
import { mayAct } from '../lib/state.js';
import { busyWhile, confirm, copyField, facts, failed, openDialog } from '../lib/ui.js';

const imageTypes = /^image\/(jpeg|png|gif|webp|avif|svg\+xml)$/;

/**
 * Opens and returns the dialog of an item.
 * @param {Alias} alias
 * @param {string} filename
 * @param {ItemOptions} options
 */
export function itemDialog(alias, filename, { deleted }) {
	const body = h('div', { class: 'item', 'aria-busy': 'true' }, h('p', { class: 'muted' }, 'Loading …'));
	const dialog = openDialog(parts(filename).at(-1) ?? filename, body, { wide: true });
	const load = async () => {
		try {
			const item = await get(['items', alias.kind, alias.name, ...parts(filename)]);
			fill(body, content(alias, item, () => {
				dialog.close();
				deleted(filename);
			}));
		} catch (error) {
			fill(body, failed(error, load));
		}
		body.removeAttribute('aria-busy');
	};
	load();
	return dialog;
}

/**
 * @param {Alias} alias
 * @param {Item} item
 * @param {() => void} deleted
 */
function content(alias, item, deleted) {
	/** @param {string} address */
	const usable = (address) => absolute(item.query ? `${address}?${item.query}` : address);
	/** @param {string} address @param {string} [label] */
	const link = (address, label) => (item.query || !item.private) && openLink(usable(address), label);
	const address = absolute(item.address);
	return [
		preview(alias, item),
		facts({
			Size: size(item.size),
			Pixels: pixels(item.sizes?.find(({ rendition }) => !rendition)),
			Changed: moment(item.modified),
			Type: item.type,
			'WebP variant': item.webp && size(item.webp.size),
		}, 'facts inline'),
		copyField('Address', address),
		item.query && copyField('Signed address, for an hour', usable(item.address)),
		snippets(alias, item, address),
		item.renditions && renditions(item.sizes?.filter(({ rendition }) => rendition)
			?? Object.entries(item.renditions).map(([rendition, address]) => ({ rendition, address })),
			usable, link),
		copyField('Stored filename', item.filename),
		h('div', { class: 'actions' }, link(item.address), mayAct()
			&& h('button', {
				type: 'button',
				class: 'danger',
				onclick: (event) => remove(event.currentTarget, alias, item, deleted),
			}, 'Delete')),
	];
}

/**
 * The size of an image as "640 × 480", '' if it is unknown.
 * @param {{width?: number, height?: number}} [image]
 */
const pixels = ({ width, height } = {}) => (width ? `${width} × ${height}` : '');

/**
 * The addresses of renditions, which usable makes whole and link opens.
 * @param {Size[]} list
 * @param {(address: string) => string} usable
 * @param {(address: string, label?: string) => any} link
 */
const renditions = (list, usable, link) =>
	h('details', null, h('summary', null, `Renditions: ${list.map(({ rendition }) => rendition).join(', ')}`),
		list.map(({ rendition, address, ...size }) =>
			copyField([rendition, pixels(size)].filter(Boolean).join(', '), usable(address),
				link(address, `Open ${rendition}`))
		));

/**
 * @param {string} address
 * @param {string} [label]
 */
const openLink = (address, label) =>
	h('a', {
		class: 'button',
		href: address,
		target: '_blank',
		rel: 'noopener noreferrer',
		'aria-label': label,
	}, 'Open');

/**
 * @param {Alias} alias
 * @param {Item} item
 */
function preview(alias, item) {
	const box = h('div', { class: 'preview' });
	/** @param {string} text */
	const none = (text) =>
		fill(box, icon(item.type?.startsWith('image/') ? 'items' : 'file'), h('p', { class: 'muted' }, text));
	if (!imageTypes.test(item.type)) return none('No preview of this type');
	return fill(box, h('img', {
		src: previewOf(alias, item),
		alt: item.name,
		onerror: () => none('No preview of this image'),
	}));
}

/**
 * @param {Alias} alias
 * @param {Item} item
 * @param {string} address
 */
function snippets(alias, item, address) {
	if (item.private) { // HTML with an address would soon show nothing
		const name = alias.kind === 'img' ? 'image_url' : 'file_url';
		return copyField('Template function',
			`{{${name} "${alias.name}" ${JSON.stringify(item.filename)} "1h"}}`);
	}
	const template = templateOf(alias, item);
	if (alias.kind === 'file') {
		return [copyField('HTML link', `<a href="${escaped(address)}">${escaped(item.name)}</a>`),
			copyField('Template function', template)];
	}
	const srcset = candidates(item.srcset);
	const img = srcset
		? `<img src="${escaped(address)}"\n  srcset="${escaped(srcset)}"\n  sizes="100vw" alt="">`
		: `<img src="${escaped(address)}" alt="">`;
	const html = item.webp && !srcset // browsers would never look at the renditions
		? `<picture>\n  <source srcset="${
			escaped(absolute(item.webp.address))
		}" type="image/webp">\n  ${img}\n</picture>` : img;
	return [copyField(html === img ? 'HTML image' : 'HTML picture', html),
		copyField('Template function', template)];
}

/**
 * The candidates of a srcset with whole addresses, each on its line; '' if there is no choice.
 * @param {string} [srcset]
 */
function candidates(srcset = '') {
	const list = srcset.split(', ').map((candidate) => {
		const [address, width] = candidate.split(' ');
		return `${absolute(address)} ${width}`;
	});
	return list.length > 1 ? list.join(',\n    ') : '';
}

/**
 * @param {Alias} alias
 * @param {Item} item
 */
function templateOf(alias, item) {
	const rest = item.address.startsWith(alias.address + '/')
		? item.address.slice(alias.address.length + 1)
		: parts(item.filename).map(encodeURIComponent).join('/');
	return `{{${alias.kind === 'img' ? 'image_path' : 'file_path'} "${alias.name}"}}/${rest}`;
}

/**
 * @param {HTMLElement} button
 * @param {Alias} alias
 * @param {Item} item
 * @param {() => void} deleted
 */
async function remove(button, alias, item, deleted) {
	const more = [item.webp && 'WebP variant', item.renditions && 'renditions'].filter(Boolean).join(' and ');
	const text = `It is removed from its storage${
		more && `, with its ${more}`
	}, and its address no longer works. This cannot be undone.`;
	if (!await confirm(`Delete “${item.name}”?`, h('p', null, text), 'Delete')) return;
	await busyWhile(button, 'The item was not deleted', async () => {
		await send('DELETE', ['items', alias.kind, alias.name, ...parts(item.filename)]);
		deleted();
	});
}
