// @ts-check
// Addresses of pages, items and previews.
import { route } from './api.js';

/**
 * The segments of a stored filename.
 * @param {string} filename
 */
export const parts = (filename) => filename.split('/').filter((segment) => segment !== '');

/**
 * The last segment of a stored filename, or of a folder.
 * @param {string} filename
 */
export const nameOf = (filename) => parts(filename).at(-1) ?? filename;

/**
 * The folder of a stored filename.
 * @param {string} filename
 */
export const folderOf = (filename) => parts(filename).slice(0, -1).join('/');

/**
 * The deepest folder with all of some stored filenames in it or below.
 * @param {string[]} filenames
 */
export function commonFolder(filenames) {
	const [first, ...rest] = filenames.map((filename) => parts(folderOf(filename)));
	return rest.reduce((common, names) => {
		const end = common.findIndex((name, i) => name !== names[i]);
		return end < 0 ? common : common.slice(0, end);
	}, first).join('/');
}

/**
 * An address with scheme and host.
 * @param {string} address
 */
export const absolute = (address) => new URL(address, location.origin).href;

/**
 * The page of a folder or search.
 * @param {string} kind
 * @param {string} alias
 * @param {string} [folder]
 * @param {Record<string, string>} [query]
 */
export const itemsHash = (kind, alias, folder = '', query = {}) =>
	hash(['items', kind, alias, ...parts(folder)], query);

/**
 * The page of the trash of an alias, or of a search in it.
 * @param {string} kind
 * @param {string} alias
 * @param {Record<string, string>} [query]
 */
export const trashHash = (kind, alias, query = {}) => hash(['trash', kind, alias], query);

/**
 * @param {string[]} segments
 * @param {Record<string, string>} query
 */
function hash(segments, query) {
	const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
	return `#/${segments.map(encodeURIComponent).join('/')}${search.size ? '?' + search : ''}`;
}

/**
 * What names an item in its list, and an entry in the trash.
 * @param {Pick<Item, 'filename' | 'id'>} item
 */
export const keyOf = ({ filename, id }) => id ?? filename;

/** The largest image that is shown as it is, in bytes. */
export const maxShown = 8 << 20;

/**
 * The address of an item's preview, which changes when the item is replaced. An entry of the trash has
 * only its bytes.
 * @param {Alias} alias
 * @param {Pick<Item, 'filename' | 'etag' | 'modified' | 'id'>} item
 * @param {Record<string, string>} [query]
 */
export const previewOf = (alias, item, query) =>
	item.id ? route(['items', alias.kind, alias.name], { trash: item.id })
		: route(['preview', alias.kind, alias.name, ...parts(item.filename)], {
			of: item.etag || item.modified,
			...query,
		});
