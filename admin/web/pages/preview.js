// @ts-check
// The preview of an item by its type. The server sends previews in a sandbox; texts are shown as text.
import { fill, h } from '../lib/dom.js';
import { size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { previewOf } from '../lib/links.js';

const maxText = 64 << 10; // bytes
const maxImage = 8 << 20; // bytes, as on the server

/** Types of images that only some browsers show. @type {Record<string, string>} */
const rare = {
	'image/heic': 'Only Safari shows HEIC images.',
	'image/heif': 'Only Safari shows HEIF images.',
	'image/tiff': 'Only Safari shows TIFF images.',
};

const textTypes = /^(text\/|application\/(json|xml|x-subrip)\b)/;

/**
 * The preview of an item. measured is called with its size in pixels and its duration in seconds, as
 * far as the browser knows them.
 * @param {Alias} alias
 * @param {Item} item
 * @param {(measured: Measured) => void} measured
 */
export function preview(alias, item, measured) {
	const box = h('div', { class: 'preview' });
	/** @param {string} text */
	const none = (text) =>
		fill(box, icon(item.type.startsWith('image/') ? 'items' : 'file'), h('p', null, text));
	const src = previewOf(alias, item);
	const [type] = item.type.split('/');
	if (type === 'image') {
		const image = h('img', {
			src,
			alt: item.name,
			onload: () => measured({ width: image.naturalWidth, height: image.naturalHeight }),
			onerror: () =>
				none(rare[item.type] ?? (item.size > maxImage ? 'Images of more than 8 MiB have no preview.'
					: 'This browser cannot show this image.')),
		});
		return fill(box, image);
	}
	if (type === 'video' || type === 'audio') {
		const player = h(type, {
			src,
			controls: true,
			preload: 'metadata',
			playsinline: true,
			'aria-label': item.name,
			onloadedmetadata: () =>
				measured({
					width: player instanceof HTMLVideoElement ? player.videoWidth : 0,
					height: player instanceof HTMLVideoElement ? player.videoHeight : 0,
					duration: player.duration,
				}),
			onerror: () => none(`This browser cannot play this ${type === 'video' ? 'film' : 'sound'}.`),
		});
		return fill(box, player);
	}
	if (item.type === 'application/pdf') {
		return navigator.pdfViewerEnabled
			? fill(box,
				h('iframe', { src: `${src}#navpanes=0&pagemode=none`, title: `Preview of ${item.name}` }))
			: none('This browser shows no PDF inside a page.');
	}
	if (!textTypes.test(item.type)) return none('No preview of this type.');
	showText(box, item, src).catch(() => none('The text could not be loaded.'));
	return box;
}

/**
 * Shows the beginning of a text.
 * @param {HTMLElement} box
 * @param {Item} item
 * @param {string} src
 */
async function showText(box, item, src) {
	if (item.size === 0) {
		fill(box, icon('file'), h('p', null, 'The file is empty.'));
		return;
	}
	const answer = await fetch(src, {
		headers: { Range: `bytes=0-${maxText - 1}` },
		credentials: 'same-origin',
	});
	if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
	const text = decoded(new Uint8Array(await answer.arrayBuffer()));
	fill(box, text === null ? [icon('file'), h('p', null, 'The file is not a text.')]
		: [h('pre', { tabindex: '0' }, text), item.size > maxText
			&& h('p', { class: 'muted small-text' }, `The first ${size(maxText)} of ${size(item.size)}`)]);
}

/**
 * The text of bytes in UTF-8, UTF-16 with a byte order mark, or else Windows-1252; null if it is not a
 * text. The last character may be cut.
 * @param {Uint8Array} bytes
 */
export function decoded(bytes) {
	const [first, second] = bytes;
	if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes, { stream: true });
	if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes, { stream: true });
	if (bytes.includes(0)) return null;
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
	} catch {
		return new TextDecoder('windows-1252').decode(bytes);
	}
}
