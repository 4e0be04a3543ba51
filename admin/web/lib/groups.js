// @ts-check
// An option of named groups as a list of forms that is added to and removed from.
import { fill, h, newId, visuallyHidden } from './dom.js';
import { entered, helpOf, textInput, wrapped } from './fields.js';
import { label, text } from './format.js';
import { icon } from './icons.js';
import { nameWords, validName } from './names.js';

/**
 * The field of named groups. make makes the fields of one group.
 * @param {Option} option
 * @param {{path: string, value: any, secrets: string[]}} context
 * @param {OptionFields} make
 * @returns {Field}
 */
export function groupsField(option, { path, value, secrets }, make) {
	const word = label(option.line ?? option.name).toLowerCase();
	const id = newId(option.name);
	/** @type {ReturnType<typeof namedGroup>[]} */
	let groups = [];
	const list = h('div', { class: 'groups' });
	const add = h('button', {
		type: 'button',
		onclick: () => {
			const added = append('');
			added.element.open = true;
			added.control.focus();
			changed();
		},
	}, icon('plus'), `Add ${word}`);
	const element = h('div', {
		class: 'field',
		role: 'group',
		'aria-labelledby': id,
		'aria-describedby': id + '-help',
	}, h('div', { class: 'field-head', id }, h('strong', null, label(option.name))),
		h('div', { class: 'help', id: id + '-help' }, helpOf(option)), list, h('div', null, add));
	for (const name of Object.keys(value ?? {}).sort()) append(name);

	/** @param {string} name */
	function append(name) {
		const context = {
			path,
			name,
			word,
			value: value?.[name],
			secrets,
			isTaken: (/** @type {string} */ other) =>
				groups.filter((each) => each.title() === other).length > 1,
		};
		const added = namedGroup(option, context, make, () => {
			groups = groups.filter((each) => each !== added);
			added.element.remove();
			add.focus(); // the focused button is gone
			changed();
		});
		groups.push(added);
		list.append(added.element);
		return added;
	}
	const changed = () => list.dispatchEvent(new Event('input', { bubbles: true }));

	return {
		path,
		name: label(option.name),
		element,
		control: add,
		read: () => undefined,
		get inner() {
			return groups;
		},
		isOn: () => groups.length > 0,
		mark() {},
	};
}

/**
 * One named group. Its path and those of its fields follow its name.
 * @param {Option} option
 * @param {{path: string, name: string, word: string, value: any, secrets: string[],
 *   isTaken: (name: string) => boolean}} context
 * @param {OptionFields} make
 * @param {() => void} remove
 */
function namedGroup(option, { path, name, word, value, secrets, isTaken }, make, remove) {
	const prefix = `${path}.${name}.`;
	const { element: options, fields } = make(option.options ?? [], { prefix, value, secrets, all: true });
	const control = textInput({ name: 'name' }, name);
	const title = () => control.value.trim();
	const named = wrapped({ name: 'name', required: true }, path, control, () => {
		const typed = entered(control);
		if (typed !== undefined && !validName.test(typed)) throw new Error(nameWords);
		if (typed !== undefined && isTaken(typed))
			throw new Error(`There is another ${word} called “${typed}”.`);
		return typed;
	});
	const check = named.read;
	named.read = () => void check(); // it is in the paths
	for (const each of fields) {
		const own = each.path.slice(prefix.length);
		Object.defineProperty(each, 'path', { get: () => `${path}.${title()}.${own}` });
	}
	const summary = h('summary');
	const hidden = visuallyHidden('');
	const element = h('details', { class: 'card', oninput: show, onchange: show }, summary,
		h('div', { class: 'fields' }, named.element, ...options.childNodes,
			h('div', null,
				h('button', { type: 'button', class: 'small quiet-danger', onclick: remove }, 'Remove',
					hidden))));
	function show() {
		fill(summary, title() || `New ${word}`, ' ', h('span', { class: 'muted' }, brief(fields)));
		hidden.textContent = ` ${title() || word}`;
	}
	show();
	return {
		get path() {
			return `${path}.${title()}`;
		},
		name: word,
		element,
		control,
		title,
		read: () => undefined,
		inner: [named, ...fields],
		isOn: () => true,
		mark: named.mark,
	};
}

/**
 * The set options in a few words.
 * @param {Field[]} fields
 */
const brief = (fields) =>
	fields.map((each) => {
		try {
			const value = each.read();
			return value === undefined ? '' : `${each.name} ${text(value)}`;
		} catch {
			return '';
		}
	}).filter(Boolean).join(' · ');
