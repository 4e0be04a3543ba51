// @ts-check
// One item: preview, facts, snippets, deletion.
import { get, send } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { escaped, moment, size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { absolute, parts, previewOf } from '../lib/links.js';
import { mayAct } from '../lib/state.js';
import { busyWhile, confirm, copyField, facts, failed, openDialog } from '../lib/ui.js';

const pictures = /^image\/(jpeg|png|gif|webp|avif|svg\+xml)$/;

/**
 * Opens and returns the dialog of an item; deleted is called after its deletion.
 * @param {Alias} alias
 * @param {string} filename
 * @param {() => void} deleted
 */
export function itemDialog(alias, filename, deleted) {
	const body = h('div', { class: 'item', 'aria-busy': 'true' }, h('p', { class: 'muted' }, 'Loading …'));
	const dialog = openDialog(parts(filename).at(-1) ?? filename, body, { wide: true });
	const load = async () => {
		try {
			const item = await get(['items', alias.kind, alias.name, ...parts(filename)]);
			fill(body, content(alias, item, () => {
				dialog.close();
				deleted();
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
	const address = absolute(item.address);
	return [
		preview(alias, item),
		facts({
			Size: size(item.size),
			Changed: moment(item.modified),
			Type: item.type,
			'WebP variant': item.webp && size(item.webp.size),
			Renditions: item.renditions && renditions(item.renditions),
		}, 'facts inline'),
		copyField('Address', address),
		snippets(alias, item, address),
		copyField('Stored filename', item.filename),
		h('div', { class: 'actions' },
			h('a', { class: 'button', href: address, target: '_blank', rel: 'noopener noreferrer' }, 'Open'),
			mayAct()
				&& h('button', {
					type: 'button',
					class: 'danger',
					onclick: (event) => remove(event.currentTarget, alias, item, deleted),
				}, 'Delete')),
	];
}

/**
 * Links to renditions.
 * @param {Record<string, string>} addresses
 */
const renditions = (addresses) =>
	Object.entries(addresses).map(([name, address], i) => [
		i > 0 && ', ',
		h('a', { href: absolute(address), target: '_blank', rel: 'noopener noreferrer' }, name),
	]);

/**
 * @param {Alias} alias
 * @param {Item} item
 */
function preview(alias, item) {
	const box = h('div', { class: 'preview' });
	/** @param {string} text */
	const none = (text) =>
		fill(box, icon(item.type?.startsWith('image/') ? 'items' : 'file'), h('p', { class: 'muted' }, text));
	if (!pictures.test(item.type)) return none('No preview of this type');
	return fill(box, h('img', {
		src: previewOf(alias, item),
		alt: item.name,
		onerror: () => none('No preview of this picture'),
	}));
}

/**
 * @param {Alias} alias
 * @param {Item} item
 * @param {string} address
 */
function snippets(alias, item, address) {
	const template = templateOf(alias, item);
	if (alias.kind === 'file') {
		return [copyField('HTML link', `<a href="${escaped(address)}">${escaped(item.name)}</a>`),
			copyField('Template function', template)];
	}
	const img = `<img src="${escaped(address)}" alt="">`;
	const html = item.webp
		? `<picture>\n  <source srcset="${
			escaped(absolute(item.webp.address))
		}" type="image/webp">\n  ${img}\n</picture>` : img;
	return [copyField(item.webp ? 'HTML picture' : 'HTML image', html),
		copyField('Template function', template)];
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
