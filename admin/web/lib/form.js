// @ts-check
// A form generated from the description of options.
import { h, newId } from './dom.js';
import { field, helpOf } from './fields.js';
import { label } from './format.js';
import { groupsField } from './groups.js';

/**
 * Returns the fields of options: {element, fields}. prefix is prepended to the paths of options,
 * value has the current values, secrets the paths of set secrets. all shows every option, not only
 * required and common ones.
 * @param {Option[]} options
 * @param {{prefix?: string, value?: Record<string, any>, secrets?: string[], all?: boolean}} [context]
 * @returns {{element: HTMLElement, fields: Field[]}}
 */
export function optionFields(options, { prefix = '', value = {}, secrets = [], all = false } = {}) {
	const made = options.map((option) => {
		const path = prefix + option.name;
		const context = { path, value: value?.[option.name], isSet: secrets.includes(path), secrets };
		return {
			option,
			context,
			field: makerOf(option)(option, context, optionFields),
		};
	});
	const isFront = (/** @type {Option} */ option) => all || option.required || option.common;
	const first = [...made.filter(({ option }) => option.required),
		...made.filter(({ option }) => !option.required && isFront(option))];
	const rest = made.filter(({ option }) => !isFront(option));
	const used = rest.some(({ context }) => context.isSet || (context.value != null && context.value !== ''));
	const element = h('div', { class: 'fields' }, first.map((m) => m.field.element), rest.length > 0
		&& h('details', { class: 'more', open: used || first.length === 0 },
			h('summary', null, 'More options'),
			h('div', { class: 'fields' }, rest.map((m) => m.field.element))));
	return { element, fields: made.map((m) => m.field) };
}

/** @param {Option} option */
const makerOf = ({ type }) => (type === 'group' ? groupField : type === 'groups' ? groupsField : field);

/**
 * A group of options with a checkbox; the options are visible if it is checked.
 * @param {Option} option
 * @param {{path: string, value: any, secrets: string[]}} context
 * @returns {Field}
 */
function groupField(option, { path, value, secrets }) {
	const inner = optionFields(option.options ?? [], { prefix: path + '.', value, secrets, all: true });
	const id = newId(option.name);
	const control = h('input', {
		type: 'checkbox',
		id,
		checked: value != null,
		'aria-describedby': id + '-help',
		onchange: show,
	});
	const box = h('div', { class: 'group', role: 'group', 'aria-label': `${label(option.name)} options` },
		inner.element);
	const element = h('div', { class: 'field side-by-side' }, control,
		h('div', null, h('div', { class: 'field-head' }, h('label', { for: id }, label(option.name))),
			h('div', { class: 'help', id: id + '-help' }, helpOf(option))), box);
	function show() {
		box.hidden = !control.checked;
	}
	show();
	return {
		path,
		name: label(option.name),
		element,
		control,
		read: () => undefined,
		inner: inner.fields,
		isOn: () => control.checked,
		mark() {},
	};
}

/**
 * Reads the form: {value, secrets, problems}; a problem is {field, message}.
 * @param {Field[]} fields
 */
export function collect(fields) {
	/** @type {Input & {problems: Problem[]}} */
	const result = { value: {}, secrets: {}, problems: [] };
	for (const each of fields) {
		each.mark('');
		if (each.inner) collectGroup(each, result);
		else collectOne(each, result);
	}
	return result;
}

/**
 * @param {Field} each
 * @param {Input & {problems: Problem[]}} result
 */
function collectOne(each, { value, secrets, problems }) {
	try {
		put(value, each.path, each.read());
		const secret = each.secret?.();
		if (secret !== undefined) secrets[each.path] = secret;
	} catch (error) {
		problems.push({ field: each, message: error.message });
	}
}

/**
 * @param {Field} group
 * @param {Input & {problems: Problem[]}} result
 */
function collectGroup(group, result) {
	if (!group.isOn?.()) return;
	const inner = collect(group.inner ?? []);
	put(result.value, group.path, at(inner.value, group.path) ?? {});
	Object.assign(result.secrets, inner.secrets);
	result.problems.push(...inner.problems);
}

/**
 * The value at a path with dots.
 * @param {any} value
 * @param {string} path
 */
const at = (value, path) => path.split('.').reduce((inside, name) => inside?.[name], value);

/**
 * @param {Record<string, any>} value
 * @param {string} path
 * @param {any} entry
 */
function put(value, path, entry) {
	if (entry === undefined) return;
	const names = path.split('.');
	const last = names.pop() ?? '';
	for (const name of names) value = value[name] ??= {};
	value[last] = entry;
}

/**
 * All fields, including those in groups.
 * @param {Field[]} fields
 * @returns {Field[]}
 */
export const allFields = (fields) =>
	fields.flatMap((each) => (each.inner ? [each, ...allFields(each.inner)] : [each]));

/**
 * Opens the sections around a field and focuses it.
 * @param {Field} each
 */
export function reveal(each) {
	for (let parent = each.element.parentElement; parent; parent = parent.parentElement) {
		if (parent instanceof HTMLDetailsElement) parent.open = true;
	}
	(each.control.disabled ? each.element.querySelector('button') : each.control)?.focus();
}
