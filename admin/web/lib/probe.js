// @ts-check
// Tests of storages and their results.
import { fill, h, rich } from './dom.js';
import { elapsed } from './format.js';
import { icon } from './icons.js';
import { announce, details, explained, guarantees } from './ui.js';

/**
 * Runs a test and shows it in element: test() returns the answer of a probe.
 * @param {HTMLElement} element
 * @param {string} name
 * @param {() => Promise<any>} test
 * @param {string} [doing] what it does meanwhile
 */
export async function showProbe(element, name, test, doing = 'write, read, delete') {
	element.hidden = false;
	element.setAttribute('aria-busy', 'true');
	const seconds = h('span', { class: 'muted' });
	const started = Date.now();
	const ticking = setInterval(() => {
		seconds.textContent = ` ${Math.round((Date.now() - started) / 1000)} s`;
	}, 1000);
	fill(element,
		h('p', { class: 'waiting' }, h('span', { class: 'spinner' }), `Testing: ${doing} …`, seconds));
	const say = (/** @type {string} */ text) => announce(text, { visible: false }); // the page shows it
	say(`Testing ${name}.`);
	try {
		const report = await test();
		fill(element, result(report));
		say(
			report.ok ? `${name}: the test succeeded.`
				: `${name}: the test failed. ${
					report.steps.find((/** @type {any} */ step) => !step.ok)?.message ?? ''
				}`,
		);
	} catch (error) {
		fill(element, h('p', { class: 'verdict bad' }, icon('down'), 'The test could not be run'),
			h('p', null, explained(error)));
		say(`The test could not be run. ${error.message}`);
		return error;
	} finally {
		clearInterval(ticking);
		element.removeAttribute('aria-busy');
	}
	return null;
}

/** @param {any} report */
function result(report) {
	return [
		h('p', { class: 'verdict ' + (report.ok ? 'good' : 'bad') }, icon(report.ok ? 'up' : 'down'),
			report.ok ? 'The test succeeded' : 'The test failed'),
		h('ol', { class: 'steps', role: 'list', 'aria-label': 'Steps' }, report.steps.map(step)),
		report.guarantees?.length > 0
		&& [h('h3', null, 'Guarantees of this storage'), guarantees(report.guarantees)],
	];
}

/** @param {any} step */
function step({ title, name, ok, took_ms: ms, message, detail, note }) {
	return h('li', { class: ok ? 'good' : 'bad' }, icon(ok ? 'check' : 'cross'),
		h('div', null,
			h('p', { class: 'step-title' }, title || name,
				h('span', { class: 'muted' }, ` ${ok ? 'done' : 'failed'}, ${elapsed(ms)}`)),
			message && h('p', null, rich(message)), note && h('p', { class: 'muted' }, rich(note)),
			details(detail)));
}
