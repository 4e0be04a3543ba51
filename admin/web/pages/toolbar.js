// @ts-check
// Shared by the pages of items and of the trash: the choice of the library, and the search.
import { h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';

/**
 * The choice of another library, whose page is at hash.
 * @param {Alias[]} aliases
 * @param {Alias} alias
 * @param {(kind: string, name: string) => string} hash
 */
export function aliasSelect(aliases, alias, hash) {
	/** @param {Alias} each */
	const option = (each) =>
		h('option', { value: `${each.kind}/${each.name}`, selected: each === alias },
			each.private ? `${each.name} (private)` : each.name);
	const kinds = [['img', 'Images'], ['file', 'Files']].filter(([kind]) =>
		aliases.some((each) => each.kind === kind)
	);
	const select = h('select', {
		id: 'alias',
		onchange: () => {
			const [kind, name] = select.value.split('/');
			location.hash = hash(kind, name);
		},
	},
		kinds.map(([kind, title]) =>
			h('optgroup', { label: title }, aliases.filter((each) => each.kind === kind).map(option))
		));
	return h('div', { class: 'tool' }, h('label', { for: 'alias' }, 'Library'), select);
}

/**
 * The search by name. hash returns the page of a search, and with '' that without one.
 * @param {string} label
 * @param {string} search
 * @param {(search: string) => string} hash
 */
export function searchForm(label, search, hash) {
	const input = h('input', {
		id: 'search',
		type: 'search',
		value: search,
		placeholder: 'A part of the name',
		autocomplete: 'off',
		spellcheck: 'false',
	});
	/** @param {Event} event */
	const submit = (event) => {
		event.preventDefault();
		location.hash = hash(input.value.trim());
	};
	return h('form', { class: 'tool grow', role: 'search', onsubmit: submit },
		h('label', { for: 'search' }, label),
		h('div', { class: 'joined' }, input,
			h('button', { type: 'submit', 'aria-label': 'Search' }, icon('search')),
			search && h('a', { class: 'button', href: hash('') }, 'Clear')));
}
