// @ts-check
// Addresses of pages, items and previews.
import { route } from './api.js';

/**
 * The segments of a stored filename.
 * @param {string} filename
 */
export const parts = (filename) => filename.split('/').filter((segment) => segment !== '');

/**
 * The folder of a stored filename.
 * @param {string} filename
 */
export const folderOf = (filename) => parts(filename).slice(0, -1).join('/');

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
export function itemsHash(kind, alias, folder = '', query = {}) {
	const path = ['items', kind, alias, ...parts(folder)].map(encodeURIComponent).join('/');
	const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
	return `#/${path}${search.size ? '?' + search : ''}`;
}

/**
 * The address of an item's preview, which changes when the item is replaced.
 * @param {Alias} alias
 * @param {Item} item
 * @param {Record<string, string>} [query]
 */
export const previewOf = (alias, item, query) =>
	route(['preview', alias.kind, alias.name, ...parts(item.filename)], {
		of: item.etag || item.modified,
		...query,
	});
