// @ts-check
// Replaces an item by another file.
import { bodyOf, newKey, route } from '../lib/api.js';
import { fill, h, newId } from '../lib/dom.js';
import { Interruption, sendRepeatedly } from '../lib/exchange.js';
import { size, span } from '../lib/format.js';
import { nameOf, parts } from '../lib/links.js';
import { guard } from '../lib/state.js';
import { ask, openDialog, showError } from '../lib/ui.js';

/**
 * The header If-Match for a change of an item: it must still be this one, if its storage can tell.
 * @param {Pick<Alias, 'dated'>} alias
 * @param {Pick<Item, 'etag'>} item
 */
export const condition = ({ dated }, { etag }) => (etag && (dated || !etag.startsWith('W/')) ? etag : '*');

const spellings = [['jpg', 'jpeg'], ['tif', 'tiff'], ['htm', 'html']];

/**
 * The extensions that mean the same as that of a filename, in lower case.
 * @param {string} name
 */
function extensionsOf(name) {
	const extension = (/\.([^./]+)$/.exec(name)?.[1] ?? '').toLowerCase();
	return spellings.find((same) => same.includes(extension)) ?? [extension];
}

/**
 * Explains why the items of an alias are never replaced.
 * @param {Alias} alias
 */
export const explainKept = (alias) =>
	ask('Items here are not replaced', [
		h('p', null, `“${alias.name}” keeps every item: a new one of the same name gets the time `
			+ 'in its name.'),
		h('p', null,
			'Upload the new file, use its address where the old one is used, and then delete this item.'),
	], [{ text: 'Close', value: '', first: true }]);

/**
 * Asks for a file of the same type. Returns null if the user cancels, or if the file has another type.
 * @param {Item} item
 * @returns {Promise<File | null>}
 */
export async function chooseFile(item) {
	const extensions = extensionsOf(item.filename).map((extension) => extension && '.' + extension);
	const input = h('input', { type: 'file', accept: extensions.join(',') });
	/** @type {File | undefined} */
	const file = await new Promise((resolve) => {
		input.addEventListener('change', () => resolve(input.files?.[0]));
		input.addEventListener('cancel', () => resolve(undefined));
		input.click();
	});
	if (!file || extensionsOf(file.name)[0] === extensionsOf(item.filename)[0]) return file ?? null;
	await showError('This file has another type', new Error(
		`“${file.name}” cannot replace “${nameOf(item.filename)}”: choose a file that ends with ${
			extensions.join(' or ') || 'no extension'
		}.`,
	));
	return null;
}

/**
 * Replaces an item in a dialog with the progress, which the user can cancel. Returns the message about
 * the outcome, which is unknown if the user has cancelled it or the connection broke.
 * @param {Alias} alias
 * @param {Item} item
 * @param {File} file
 * @returns {Promise<string>}
 */
export async function replace(alias, item, file) {
	const id = newId('progress');
	const name = nameOf(item.filename);
	const bar = h('progress', { id, max: 1, value: 0 });
	const text = h('label', { for: id }, `Sending ${size(file.size)} …`);
	const cancelled = new AbortController();
	const dialog = openDialog(`Replacing ${name}`, [text, bar,
		h('div', { class: 'actions' },
			h('button', { type: 'button', onclick: () => cancelled.abort() }, 'Cancel'))], {
		required: true,
	});
	/** @param {number} sent */
	const progress = (sent) => {
		bar.value = file.size ? sent / file.size : 1;
		if (sent === file.size) fill(text, 'Sent; the server is checking and storing it …');
	};
	const address = route(['items', alias.kind, alias.name, ...parts(item.filename)]);
	dialog.addEventListener('close', () => cancelled.abort()); // also when another page is shown
	const headers = { 'If-Match': condition(alias, item), 'Idempotency-Key': newKey() };
	guard(() => true, 'The file is being sent.');
	try {
		const answer = await sendRepeatedly('PUT', address, cancelled.signal, headers, file, progress);
		return seenFor(bodyOf(answer).cached_for ?? 0);
	} catch (error) {
		if (!(error instanceof Interruption)) throw error;
		const end = cancelled.signal.aborted ? 'was cancelled' : 'failed, since the connection broke';
		return `Replacing ${name} ${end}. The panel shows what the server has now.`;
	} finally {
		guard(() => false);
		dialog.close('');
	}
}

/**
 * How long others may see the old item.
 * @param {number} seconds
 */
export function seenFor(seconds) {
	if (seconds <= 0) return 'The item is replaced. Others see the new one from now on.';
	return `The item is replaced. Others may still see the old one for ${span(seconds)}.`;
}
