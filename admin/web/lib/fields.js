// @ts-check
// One option of a configuration as a field of a form.
//
// A field is {path, name, element, control, read, secret, mark}. read returns the value, or
// undefined if unset, and throws an Error with a message if it is invalid. secret (only of secret
// fields) returns the input, '' to remove the secret, undefined to keep it. mark shows a message at
// the field.
import { fill, h, newId, rich, visuallyHidden } from './dom.js';
import { duration, exactSize, isDuration, label, literal, onOff, parseSize } from './format.js';
import { icon } from './icons.js';

/**
 * Returns the field of an option.
 * @param {Option} option
 * @param {{path: string, value: any, isSet?: boolean}} context
 */
export function field(option, { path, value, isSet = false }) {
	if (option.type === 'texts' && option.words) return ticksField(option, { path, value });
	const make = option.secret ? secretField : makers[option.type ?? ''] ?? textField;
	return make(option, { path, value, isSet });
}

/** @type {Record<string, (option: Option, context: Context) => Field>} */
const makers = {
	texts: textsField,
	word: wordField,
	switch: switchField,
	count: countField,
	size: sizeField,
	duration: durationField,
};

/**
 * A field around a control, with label, help and error message.
 * @param {Option} option
 * @param {string} path
 * @param {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} control
 * @param {() => any} read
 * @param {{after?: Child, help?: Child, side?: boolean}} [parts]
 * @returns {Field}
 */
export function wrapped(option, path, control, read, { after, help, side = false } = {}) {
	const id = newId(option.name);
	const error = h('p', { id: id + '-error', class: 'field-error', hidden: true });
	control.id = id;
	control.setAttribute('aria-describedby', `${id}-help ${id}-error`);
	if (option.required) control.required = true;
	const name = label(option.name);
	const head = h('div', { class: 'field-head' }, h('label', { for: id }, name),
		option.required && h('span', { class: 'required' }, 'required'));
	const helpText = h('div', { class: 'help', id: id + '-help' }, help ?? helpOf(option));
	const element = side
		? h('div', { class: 'field side-by-side' }, control, h('div', null, head, helpText, error))
		: h('div', { class: 'field' }, head, control, after, helpText, error);
	return {
		path,
		name,
		type: option.type,
		element,
		control,
		read: () => required(option, read()),
		mark: marker(control, error),
	};
}

/**
 * Help and default of an option.
 * @param {Option} option
 */
export function helpOf(option) {
	return [
		option.help && h('p', null, rich(option.help)),
		option.default && h('p', { class: 'default' }, 'Default: ', rich(option.default.replace(/\.$/, ''))),
	];
}

/**
 * @param {Option} option
 * @param {any} value
 */
function required(option, value) {
	if (option.required && value === undefined) throw new Error(`${label(option.name)} is required.`);
	return value;
}

/**
 * @param {HTMLElement} control
 * @param {HTMLElement} error
 * @returns {(message: string) => void}
 */
function marker(control, error) {
	return (message) => {
		error.hidden = !message;
		fill(error, message && icon('down'), message);
		if (message) control.setAttribute('aria-invalid', 'true');
		else control.removeAttribute('aria-invalid');
	};
}

/**
 * The input of a text.
 * @param {Option} option
 * @param {any} value
 * @param {Record<string, any>} [attributes]
 */
export const textInput = (option, value, attributes) =>
	h('input', {
		type: 'text',
		value,
		placeholder: option.example,
		autocomplete: 'off',
		autocapitalize: 'none',
		spellcheck: 'false',
		...attributes,
	});

/**
 * The text of an input, undefined if it is empty.
 * @param {{value: string}} control
 */
export const entered = (control) => control.value.trim() || undefined;

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function textField(option, { path, value }) {
	const control = textInput(option, value ?? '');
	return wrapped(option, path, control, () => entered(control));
}

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function textsField(option, { path, value }) {
	const shown = (value ?? []).join('\n');
	const control = h('textarea', {
		rows: Math.min(8, Math.max(2, (value ?? []).length + 1)),
		value: shown,
		placeholder: option.example,
		spellcheck: 'false',
		autocapitalize: 'none',
	});
	const read = () => {
		const lines = control.value.split('\n').map((line) => line.trim()).filter(Boolean);
		return lines.length ? lines : undefined;
	};
	return wrapped(option, path, control, read, { help: [helpOf(option), h('p', null, 'One per line.')] });
}

/**
 * Check boxes for a list of words. A value that is none of them has one too.
 * @param {Option} option
 * @param {Context} context
 * @param {{title?: string, note?: (word: string) => string}} [parts]
 * @returns {Field}
 */
export function ticksField(option, { path, value }, { title = label(option.name), note } = {}) {
	const chosen = /** @type {string[]} */ (value ?? []);
	const boxes = [...new Set([...option.words ?? [], ...chosen])].map((word) =>
		h('input', { type: 'checkbox', id: newId('tick'), value: word, checked: chosen.includes(word) })
	);
	const id = newId(option.name);
	const error = h('p', { class: 'field-error', id: id + '-error', hidden: true });
	const element = h('fieldset', { class: 'field', 'aria-describedby': `${id} ${id}-error` },
		h('legend', null, title), h('div', { class: 'help', id }, helpOf(option)),
		h('div', { class: 'ticks' },
			boxes.map((box) =>
				h('div', { class: 'tick' }, box,
					h('label', { for: box.id }, option.names ? box.value : label(box.value)),
					note && h('span', { class: 'muted small-text' }, note(box.value)))
			)), error);
	return {
		path,
		name: title,
		type: option.type,
		element,
		control: boxes[0] ?? element,
		read: () => {
			const ticked = boxes.filter((box) => box.checked).map((box) => box.value);
			return ticked.length > 0 ? ticked : undefined;
		},
		mark: (message) => { // a group cannot be invalid by itself
			error.hidden = !message;
			fill(error, message && icon('down'), message);
		},
	};
}

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function wordField(option, { path, value }) {
	const standard = literal(option.default);
	const words = option.words ?? [];
	const known = value == null || value === '' || words.includes(value) ? words : [...words, value];
	const title = (/** @type {string} */ word) => (option.names ? word : label(word));
	const none = option.required ? 'Choose …' : standard ? `Default: ${title(standard)}` : 'Default';
	const control = h('select', null, h('option', { value: '' }, none),
		known.map((word) => h('option', { value: word }, title(word))));
	control.value = value ?? '';
	return wrapped(option, path, control, () => control.value || undefined, {
		help: helpOf(standard ? { ...option, default: '' } : option),
	});
}

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function switchField(option, { path, value }) {
	const standard = /^`(true|false)`(?=$|,)/.exec(option.default ?? '`false`')?.[1];
	if (!standard) return threeState(option, { path, value });
	const byDefault = standard === 'true';
	const control = h('input', { type: 'checkbox', checked: value ?? byDefault });
	const read = () => (control.checked === byDefault && value == null ? undefined : control.checked);
	return wrapped(option, path, control, read, {
		side: true,
		help: helpOf({ ...option, default: onOff(option.default ?? '`false`') }),
	});
}

/**
 * The default depends on other options.
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function threeState(option, { path, value }) {
	const control = h('select', null,
		[['', 'Default'], ['true', 'On'], ['false', 'Off']].map(([word, text]) =>
			h('option', { value: word }, text)
		));
	control.value = String(value ?? '');
	return wrapped(option, path, control, () => ({ true: true, false: false })[control.value], {
		help: helpOf({ ...option, default: onOff(option.default) }),
	});
}

/**
 * Texts that represent numbers: an unedited value is sent unchanged.
 * @param {Option} option
 * @param {string} path
 * @param {any} value
 * @param {string} shown
 * @param {(text: string) => any} parse
 * @param {Record<string, any>} [attributes]
 */
function parsedField(option, path, value, shown, parse, attributes) {
	const control = textInput(option, shown, attributes);
	const read = () => {
		const text = entered(control);
		if (text === undefined) return undefined;
		return text === shown ? value : parse(text);
	};
	return wrapped(option, path, control, read);
}

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function countField(option, { path, value }) {
	return parsedField(option, path, value, value ? String(value) : '', (text) => {
		if (!/^[1-9]\d{0,14}$/.test(text))
			throw new Error(`${label(option.name)} is a whole number above zero, not “${text}”.`);
		return Number(text);
	}, { inputmode: 'numeric' });
}

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function sizeField(option, { path, value }) {
	const example = { ...option, example: option.example ?? 'such as 32 MiB' };
	return parsedField(example, path, value, value ? exactSize(value) : '', (text) => {
		const bytes = parseSize(text);
		if (!(bytes > 0))
			throw new Error(`${label(option.name)} is a size such as 32 MiB or 2 GiB, not “${text}”.`);
		return bytes;
	});
}

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function durationField(option, { path, value }) {
	const example = { ...option, example: option.example ?? 'such as 30s or 5m' };
	return parsedField(example, path, value, duration(value), (text) => {
		if (!isDuration(text))
			throw new Error(`${label(option.name)} is a duration such as 30s, 5m or 1h30m, not “${text}”.`);
		return text;
	});
}

const hint = 'Write {env.NAME} or {file./path} to keep it out of the configuration.';

/**
 * @param {Option} option
 * @param {Context} context
 * @returns {Field}
 */
function secretField(option, { path, isSet }) {
	const key = /private_key|certificate/.test(option.name); // multi-line
	const kept = 'Set: leave empty to keep';
	const common = {
		placeholder: isSet ? kept : option.example,
		autocomplete: 'new-password',
		spellcheck: 'false',
		autocapitalize: 'none',
	};
	const control = key ? h('textarea', { ...common, rows: 3, class: 'masked' })
		: h('input', { ...common, type: 'password' });
	let removed = false;
	const remove = h('button', { type: 'button', class: 'small', 'aria-pressed': 'false', onclick: toggle },
		h('span', null, 'Remove', visuallyHidden(` ${label(option.name)}`)));
	const state = h('p', { class: 'default' }, kept + '.');
	function toggle() {
		removed = !removed;
		remove.setAttribute('aria-pressed', String(removed));
		control.disabled = removed;
		control.placeholder = removed ? 'Will be removed' : kept;
		fill(state, removed ? 'Will be removed when you save.' : kept + '.');
		remove.dispatchEvent(new Event('input', { bubbles: true }));
	}
	const made = wrapped(option, path, control, () => undefined, {
		after: isSet && h('div', { class: 'secret-state' }, state, remove),
		help: [helpOf(option),
			!option.help?.includes('{env.') && h('p', null, rich(hint.replace(/\{[^}]*\}/g, '`$&`')))],
	});
	const secret = () => (removed && isSet ? '' : control.value || undefined);
	made.secret = secret;
	made.read = () => {
		if (option.required && !secret() && (!isSet || removed))
			throw new Error(`${label(option.name)} is required.`);
		return undefined;
	};
	return made;
}
