// @ts-check
// Creates elements. Data from the server is always inserted as text.

const properties = new Set(['value', 'checked', 'selected', 'disabled', 'hidden', 'open']);
let count = 0;

/**
 * The element of the page with an id, which exists.
 * @param {string} id
 */
export function byId(id) {
	const element = document.getElementById(id);
	if (!element) throw new Error(`The page has no element #${id}.`);
	return element;
}

/** A unique element id. */
export const newId = (name = 'id') => `${name}-${++count}`;

/**
 * Creates an element. Attributes: functions are listeners for the event of their name ("onclick"),
 * true is an empty attribute, null, undefined and false are none. Children: nodes, texts, lists of
 * them.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (value == null || value === false) continue;
		if (typeof value === 'function') element.addEventListener(name.slice(2), value);
		else if (properties.has(name)) Object.assign(element, { [name]: value });
		else element.setAttribute(name, value === true ? '' : value);
	}
	return append(element, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Child[]} children
 */
function append(element, children) {
	element.append(
		...children.flat(Infinity).filter((child) => child != null && child !== false && child !== ''),
	);
	return element;
}

/**
 * Text with `words` in backticks as code.
 * @param {string | null | undefined} text
 */
export function rich(text) {
	return (text ?? '').split('`').map((
		piece,
		i,
	) => (i % 2 ? h('code', { class: piece.length < 20 && 'whole' }, piece) : piece));
}

/**
 * Text for screen readers only.
 * @param {string} text
 */
export const visuallyHidden = (text) => h('span', { class: 'visually-hidden' }, text);

/**
 * Replaces the children of element.
 * @template {Element} E
 * @param {E} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
	element.replaceChildren();
	return append(element, children);
}
