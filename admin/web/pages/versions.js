// @ts-check
// The earlier versions of an item, in its dialog.
import { get } from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { moment, size } from '../lib/format.js';
import { nameOf, trashHash } from '../lib/links.js';
import { explained, once, openDialog, time, waiting } from '../lib/ui.js';
import { thumbnail } from './entries.js';
import { preview } from './preview.js';
import { bringBack, hasTrash } from './restore.js';

const shownAtMost = 50;

/**
 * The earlier versions of an item, which are read when the user asks for them. back is called with one
 * that was brought back.
 * @param {Alias} alias
 * @param {string} filename
 * @param {(restored: Restored) => Promise<void>} back
 */
export function versions(alias, filename, back) {
	if (!hasTrash(alias)) return null;
	const content = h('div');
	const element = h('details', { ontoggle: () => element.open && load() },
		h('summary', null, 'Earlier versions'), content);

	async function load() {
		fill(content, waiting());
		try {
			/** @type {TrashPage} */
			const { result, next } = await get(['items', alias.kind, alias.name], {
				trash: '1',
				filename,
				limit: shownAtMost,
			});
			fill(content, result.length > 0
				? h('ul', { class: 'versions', role: 'list', 'aria-label': 'Earlier versions' },
					result.map(version))
				: h('p', { class: 'muted' }, 'There are none. The present one is kept when it is replaced.'),
				next
					&& h('p', null,
						h('a', { href: trashHash(alias.kind, alias.name, { search: nameOf(filename) }) },
							'Show all in the trash')));
		} catch (error) {
			fill(content, h('p', { class: 'trouble' }, explained(error)));
		}
	}

	/** @param {Kept} entry */
	function version(entry) {
		const stored = moment(entry.stored);
		return h('li', null, thumbnail(alias, entry, ''),
			h('div', null, h('p', null, stored),
				h('p', { class: 'muted small-text' }, size(entry.size), ', until ', time(entry.removed))),
			h('div', { class: 'actions' }, h('button', {
				type: 'button',
				class: 'small',
				'aria-label': `Preview of the version of ${stored}`,
				onclick: () => openDialog(`Version of ${stored}`, preview(alias, entry, () => {})),
			}, 'Preview'), h('button', {
				type: 'button',
				class: 'small',
				'aria-label': `Bring back the version of ${stored}`,
				onclick: (event) => once(event.currentTarget, () => restore(entry)),
			}, 'Bring back')));
	}

	/** @param {Kept} entry */
	async function restore(entry) {
		const [restored] = await bringBack(alias, [entry], true);
		if (restored) await back(restored);
	}

	return element;
}
