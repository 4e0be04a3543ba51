// Makes elements. Whatever comes from the server is text and stays text.

const properties = new Set(['value', 'checked', 'selected', 'disabled', 'hidden', 'open']);
let count = 0;

/** An id that no other element has. */
export const newId = (name = 'id') => `${name}-${++count}`;

/**
 * Makes an element. Attributes: functions listen to the event of their name ("onclick"), true gives
 * an empty attribute, null, undefined and false give none. Children: nodes, texts, lists of them.
 */
export function h(tag, attributes, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (value == null || value === false) continue;
		if (typeof value === 'function') element.addEventListener(name.slice(2), value);
		else if (properties.has(name)) element[name] = value;
		else element.setAttribute(name, value === true ? '' : value);
	}
	element.append(...children.flat(Infinity).filter((child) => child != null && child !== false && child !== ''));
	return element;
}

/** Text in which `words` in backticks become code. */
export function rich(text) {
	return (text ?? '').split('`').map((piece, i) => (i % 2 ? h('code', { class: piece.length < 20 && 'whole' }, piece) : piece));
}

/** Text for those who cannot see. */
export const unseen = (text) => h('span', { class: 'unseen' }, text);

/** Shows nodes in place of what element shows. */
export function fill(element, ...children) {
	element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false && child !== ''));
	return element;
}
