// @ts-check
// The preview of an item by its type. The server sends previews in a sandbox; texts are shown as text.
import { readStart } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { size } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { maxShown, nameOf, previewOf } from '../lib/links.js';
import { explained } from '../lib/ui.js';

const maxText = 64 << 10; // bytes

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
	const name = nameOf(item.filename);
	/** @param {...Child} text */
	const none = (...text) =>
		fill(box, icon(item.content_type.startsWith('image/') ? 'items' : 'file'), h('p', null, text));
	const src = previewOf(alias, item.webp ? { ...item, filename: `${item.filename}.webp` } : item);
	/**
	 * Says why nothing is shown: by the refusal of the server, or else by text.
	 * @param {string} text
	 */
	const failed = (text) =>
		readStart(src, 1).then(() => none(text), (error) =>
			none(error.status === 404 ? text : explained(error)));
	if (item.size === 0) return none('The file is empty.');
	const [type] = item.content_type.split('/');
	if (type === 'image') {
		if (item.size > maxShown && !item.webp) return none('Images of more than 8 MiB have no preview.');
		const image = h('img', {
			src,
			alt: name,
			onload: () => measured({ width: image.naturalWidth, height: image.naturalHeight }),
			onerror: () => failed(rare[item.content_type] ?? 'This browser cannot show this image.'),
		});
		return fill(box, image);
	}
	if (type === 'video' || type === 'audio') {
		const player = h(type, {
			src,
			controls: true,
			preload: 'metadata',
			playsinline: true,
			'aria-label': name,
			onloadedmetadata: () => {
				const { videoWidth: width = 0, videoHeight: height = 0, duration } =
					/** @type {HTMLVideoElement} */ (player);
				if (type === 'video' && width === 0)
					box.append(h('p', null, 'This browser plays only the sound of this film.'));
				measured({ width, height, duration });
			},
			onerror: () => failed(`This browser cannot play this ${type === 'video' ? 'film' : 'sound'}.`),
		});
		return fill(box, player);
	}
	if (item.content_type === 'application/pdf') {
		if (item.id) return none('A deleted PDF has no preview. Download it to read it.');
		return navigator.pdfViewerEnabled
			? fill(box, h('iframe', { src: `${src}#navpanes=0&pagemode=none`, title: `Preview of ${name}` }))
			: none('This browser shows no PDF inside a page.');
	}
	if (!textTypes.test(item.content_type)) return none('No preview of this type.');
	showText(box, item, src).catch((error) => none(explained(error)));
	return box;
}

/**
 * Shows the beginning of a text.
 * @param {HTMLElement} box
 * @param {Item} item
 * @param {string} src
 */
async function showText(box, item, src) {
	const text = decoded(await readStart(src, maxText), item.size > maxText);
	fill(box, text === null ? [icon('file'), h('p', null, 'The file is not a text.')]
		: [h('pre', { tabindex: '0', dir: 'auto' }, text), item.size > maxText
			&& h('p', { class: 'muted small-text' }, `The first ${size(maxText)} of ${size(item.size)}`)]);
}

/**
 * The text of bytes in UTF-8, UTF-16 with a byte order mark, or else Windows-1252; null if it is not a
 * text.
 * @param {Uint8Array} bytes
 * @param {boolean} cut whether the last character may be cut
 */
export function decoded(bytes, cut) {
	/** @param {string} encoding */
	const as = (encoding) =>
		new TextDecoder(encoding, { fatal: encoding === 'utf-8' }).decode(bytes, { stream: cut });
	const [first, second] = bytes;
	if (first === 0xff && second === 0xfe) return as('utf-16le');
	if (first === 0xfe && second === 0xff) return as('utf-16be');
	if (bytes.includes(0)) return null;
	try {
		return as('utf-8');
	} catch {
		return as('windows-1252');
	}
}
