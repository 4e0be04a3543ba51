// @ts-check
// Actions on many items by few requests.
import { post } from './api.js';
import { h } from './dom.js';

const perRequest = 1000;
const shownNames = 5;

/**
 * Sends an action on items by requests of at most 1,000, and records its progress. Each step yields the
 * results of the items on which it has succeeded.
 * @template {Record<string, any>} R
 * @param {Alias} alias
 * @param {[string, string][]} fields of each request
 * @param {{filename: string, id?: string}[]} items
 * @param {{key: 'filename' | 'id', success: string, failure: string}} names of the field that names an
 *   item, of the member of a result that is true after a success, and a text without a message
 * @param {Progress} progress
 * @returns {AsyncGenerator<R[]>}
 */
export async function* inSets(alias, fields, items, { key, success, failure }, progress) {
	const filenames = new Map(items.map((item) => [item[key] ?? '', item.filename]));
	for (let i = 0; i < items.length && !progress.stopped(); i += perRequest) {
		/** @type {[string, string][]} */
		const named = items.slice(i, i + perRequest).map((item) => [key, item[key] ?? '']);
		/** @type {{result: R[]}} */
		const { result } = await post(['items', alias.kind, alias.name], [...fields, ...named]);
		const done = result.filter((each) => each[success]);
		progress.done(done.length);
		for (const each of result)
			if (!each[success]) progress.fail(filenames.get(each[key]) ?? each[key], each.message ?? failure);
		yield done;
	}
}

/**
 * The first names of items, for a question.
 * @param {{filename: string}[]} items
 */
export const nameList = (items) =>
	h('ul', null, items.slice(0, shownNames).map(({ filename }) => h('li', null, filename)),
		items.length > shownNames
			&& h('li', null, `and ${(items.length - shownNames).toLocaleString('en')} more`));
