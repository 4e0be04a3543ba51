// A form generated from the description of options.
import { h, newId } from './dom.js';
import { field, helpOf } from './fields.js';
import { label } from './format.js';

/**
 * Returns the fields of options: {element, fields}. prefix is prepended to the paths of options,
 * value has the current values, secrets the paths of set secrets. all shows every option, not only
 * required and common ones.
 */
export function optionFields(options, { prefix = '', value = {}, secrets = [], all = false } = {}) {
	const made = options.map((option) => {
		const path = prefix + option.name;
		const context = { path, value: value?.[option.name], isSet: secrets.includes(path), secrets };
		return {
			option,
			context,
			field: option.type === 'group' ? groupField(option, context) : field(option, context),
		};
	});
	const front = ({ option }) => all || option.required || option.common;
	const first = [...made.filter(({ option }) => option.required),
		...made.filter((m) => !m.option.required && front(m))];
	const rest = made.filter((m) => !front(m));
	const used = rest.some(({ context }) => context.isSet || (context.value != null && context.value !== ''));
	const element = h('div', { class: 'fields' }, first.map((m) => m.field.element), rest.length > 0
		&& h('details', { class: 'more', open: used || first.length === 0 },
			h('summary', null, 'More options'),
			h('div', { class: 'fields' }, rest.map((m) => m.field.element))));
	return { element, fields: made.map((m) => m.field) };
}

// A group of options with a checkbox; the options are visible if it is checked.
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
		inner: inner.fields,
		isOn: () => control.checked,
		mark() {},
	};
}

/** Reads the form: {value, secrets, problems}; a problem is {field, message}. */
export function collect(fields) {
	const result = { value: {}, secrets: {}, problems: [] };
	for (const each of fields) {
		each.mark('');
		if (each.inner) collectGroup(each, result);
		else collectOne(each, result);
	}
	return result;
}

function collectOne(each, { value, secrets, problems }) {
	try {
		put(value, each.path, each.read());
		const secret = each.secret?.();
		if (secret !== undefined) secrets[each.path] = secret;
	} catch (error) {
		problems.push({ field: each, message: error.message });
	}
}

function collectGroup(group, result) {
	if (!group.isOn()) return;
	const inner = collect(group.inner);
	put(result.value, group.path, at(inner.value, group.path) ?? {});
	Object.assign(result.secrets, inner.secrets);
	result.problems.push(...inner.problems);
}

// The value at a path with dots.
const at = (value, path) => path.split('.').reduce((inside, name) => inside?.[name], value);

function put(value, path, entry) {
	if (entry === undefined) return;
	const names = path.split('.');
	const last = names.pop();
	for (const name of names) value = value[name] ??= {};
	value[last] = entry;
}

/** All fields, including those in groups. */
export const allFields = (fields) =>
	fields.flatMap((each) => (each.inner ? [each, ...allFields(each.inner)] : [each]));

/** Opens the sections around a field and focuses it. */
export function reveal(each) {
	for (let parent = each.element.parentElement; parent; parent = parent.parentElement) {
		if (parent.tagName === 'DETAILS') parent.open = true;
	}
	(each.control.disabled ? each.element.querySelector('button') : each.control)?.focus();
}
