// @ts-check
// Resolves concurrent edits of an entry.
import { h } from './dom.js';
import { input, label } from './format.js';
import { ask } from './ui.js';

/**
 * Shows the differences between the saved and the own values. Returns 'mine', 'theirs' or ''.
 * @param {string} what
 * @param {Entry} now
 * @param {Input} mine
 * @param {TypeOf} typeOf
 */
export function askConflict(what, now, mine, typeOf) {
	const rows = differences(now, mine, typeOf);
	const table = rows.length === 0
		? h('p', null, 'The saved values are equal to yours.')
		: h('div', { class: 'scroll' },
			h('table', { 'aria-label': 'Differences' },
				h('thead', null,
					h('tr', null,
						['Option', 'Saved', 'Yours'].map((text) => h('th', { scope: 'col' }, text)))),
				h('tbody', null,
					rows.map(({ path, now: theirs, mine: ours }) =>
						h('tr', null, h('th', { scope: 'row' }, nameOf(path)), h('td', null, theirs),
							h('td', null, ours))
					))));
	return ask(`Someone else has changed this ${what}`, [
		h('p', null, 'None of your input is lost. Which version do you want?'),
		table,
	], [
		{ text: 'Continue editing', value: '', first: true },
		{ text: 'Use theirs', value: 'theirs' },
		{ text: 'Overwrite with mine', value: 'mine', look: 'primary' },
	], { wide: true });
}

/** @param {string} path */
const nameOf = (
	path,
) => (path === 'driver.name' ? 'Driver' : path.replace(/^driver\./, '').split('.').map(label).join(': '));

/**
 * Returns the options that differ as texts: {path, now, mine}.
 * @param {Entry} now
 * @param {Input} mine
 * @param {TypeOf} typeOf
 */
export function differences(now, mine, typeOf) {
	const theirs = flat(now.value ?? {}, typeOf);
	const ours = flat(mine.value, typeOf);
	for (const path of now.secrets ?? []) theirs.set(path, 'set');
	for (const path of now.secrets ?? []) ours.set(path, 'set');
	for (const [path, secret] of Object.entries(mine.secrets))
		ours.set(path, secret === '' ? 'removed' : 'a new value');
	const paths = [...new Set([...theirs.keys(), ...ours.keys()])].sort();
	return paths.map((path) => ({
		path,
		now: theirs.get(path) ?? 'not set',
		mine: ours.get(path) ?? 'not set',
	}))
		.filter((row) => row.now !== row.mine);
}

/**
 * @param {Record<string, any>} value
 * @param {TypeOf} typeOf
 * @param {string} [prefix]
 * @param {Map<string, string>} [into]
 * @returns {Map<string, string>}
 */
function flat(value, typeOf, prefix = '', into = new Map()) {
	for (const [name, inside] of Object.entries(value)) {
		if (name.startsWith('@') || inside == null || inside === '') continue; // hidden in forms
		if (typeof inside !== 'object' || Array.isArray(inside))
			into.set(prefix + name, input(inside, typeOf(prefix + name)));
		else if (Object.keys(inside).length === 0) into.set(prefix + name, 'on'); // with its defaults
		else flat(inside, typeOf, `${prefix}${name}.`, into);
	}
	return into;
}
