// @ts-check
// The configuration as the global option of a Caddyfile.
import { get } from './api.js';
import { h, rich } from './dom.js';
import { plural } from './format.js';
import { ask, busyWhile, copyField } from './ui.js';

/** The button that shows the running configuration as a Caddyfile. */
export const caddyfileButton = () =>
	h('button', { type: 'button', 'data-key': 'caddyfile', onclick: (event) => show(event.currentTarget) },
		'As Caddyfile');

/** @param {HTMLElement} button */
function show(button) {
	return busyWhile(button, 'The configuration cannot be shown', async () => {
		const answer = await get(['config', 'caddyfile']);
		await ask('The configuration as Caddyfile', [
			notes(answer).map((note) => h('p', null, rich(note))),
			answer.variables.length > 0
			&& h('details', null, h('summary', null, 'Variables'),
				h('ul', null, variables(answer).map((line) => h('li', null, rich(line))))),
			copyField('Global option', answer.text),
		], [{ text: 'Close', value: '', first: true }], { wide: true });
	});
}

/**
 * The hints for using the answer, and the values that it lacks.
 * @param {CaddyfileAnswer} answer
 * @returns {string[]}
 */
export function notes({ command, variables: list, omitted }) {
	const all = ['Replace the block `media` in the global options of the Caddyfile by this.'];
	if (list.length > 0) {
		all.push(
			'Secrets and password hashes never leave the server: placeholders stand for them. Set '
				+ `${plural(list.length, 'variable')} in the environment of Caddy first, or keep the line of `
				+ 'the old Caddyfile where its value was not changed since. '
				+ `On the server, \`${command}/<path>\` prints each value.`,
		);
	}
	if (omitted.length > 0) {
		all.push(`A Caddyfile cannot express ${omitted.map((path) => '`' + path + '`').join(', ')}. Put `
			+ 'the downloaded JSON into the configuration instead.');
	}
	return all;
}

/**
 * The variables to set, each with the path of its secret.
 * @param {CaddyfileAnswer} answer
 */
export const variables = ({ variables: list }) => list.map(({ name, path }) => `\`${name}\`: \`${path}\``);
