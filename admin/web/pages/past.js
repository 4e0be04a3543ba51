// @ts-check
// Brings a library back to what it was at a time.
import { post } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { moment, plural, span } from '../lib/format.js';
import { failureList, showResult, withProgress } from '../lib/progress.js';
import { nameList } from '../lib/sets.js';
import { may } from '../lib/state.js';
import { announce, ask, explained } from '../lib/ui.js';
import { offerUndo } from '../lib/undo.js';
import { hasTrash } from './restore.js';

/** What happens to items, with the words of a plan and of a result. @type {[PastAction, string, string][]} */
const actions = [
	['restored', 'Come back', 'back'],
	['replaced', 'Get the earlier version', 'with the earlier version'],
	['removed', 'Came later, and go to the trash', 'in the trash'],
	['doubtful', 'Stay, because they were stored at about that time', 'left as they are'],
];

/**
 * Whether this user may bring an alias back to a time.
 * @param {Alias} alias
 */
export const mayGoBack = (alias) => hasTrash(alias) && may('delete') && (!alias.overwrite || may('replace'));

/**
 * Asks for a time, shows what would change, and brings the alias back to that time.
 * @param {Alias} alias
 * @param {() => void} changed
 */
export async function goBack(alias, changed) {
	const at = await askTime(alias);
	if (!at) return;
	const { plan, error } = await send(alias, at, 'Looking what changes', 0, true);
	if (error) {
		await showResult('Nothing has changed', h('p', { class: 'trouble' }, explained(error)));
		return;
	}
	const total = plan.restored.items + plan.replaced.items + plan.removed.items;
	const sections = actions.filter(([action]) => plan[action].items > 0).map(([action, words]) => [
		h('p', null, h('strong', null, `${words}: `), plural(plan[action].items, 'item')),
		nameList(namesOf(plan[action])),
	]);
	const title = `As it was at ${moment(at)}`;
	if (total === 0) {
		await showResult(title,
			sections.length > 0 ? sections : h('p', null, 'Nothing has changed since then.'));
		return;
	}
	const choice = await ask(title, [sections, h('p', null, 'What is uploaded meanwhile stays.')], [
		{ text: 'Cancel', value: '', first: true },
		{ text: `Change ${plural(total, 'item')}`, value: 'yes', look: 'primary' },
	]);
	if (choice) await carryOut(alias, at, total, changed);
}

/**
 * Brings the alias back, and offers to undo that.
 * @param {Alias} alias
 * @param {string} at
 * @param {number} total
 * @param {() => void} changed
 */
async function carryOut(alias, at, total, changed) {
	const { plan, error, stopped } = await send(alias, at, 'Bringing back', total, false);
	changed();
	const done = plan.restored.items + plan.replaced.items + plan.removed.items;
	const text = actions.filter(([action]) => plan[action].items > 0)
		.map(([action, , words]) => `${plural(plan[action].items, 'item')} ${words}`).join(', ');
	if (done > 0)
		offerUndo(`${text}.`, () => carryOut(alias, plan.began, done, changed));
	if (error || stopped || plan.failed.length > 0) {
		await showResult('Not all is as it was', text && h('p', null, `${text}.`),
			error && h('p', { class: 'trouble' }, explained(error)), failureList(plan.failed),
			(error || stopped) && h('p', null, 'Do it again to continue.'));
	} else if (done === 0) announce('Nothing has changed.');
}

/**
 * Asks for a time that the trash reaches. Returns it, and '' for none.
 * @param {Alias} alias
 */
async function askTime(alias) {
	const now = Date.now();
	const reach = alias.trash ?? 0; // in seconds
	const input = h('input', {
		id: 'past',
		type: 'datetime-local',
		step: '1',
		min: local(now - reach * 1000),
		max: local(now),
		value: local(now - 3600_000),
	});
	const choice = await ask('As it was at …', [
		h('p', null, `All items of “${alias.name}” become what they were at that time: what was deleted`,
			' since comes back, and what came later goes to the trash. First you see what changes.'),
		h('div', { class: 'field' }, h('label', { for: 'past' }, 'Date and time'), input,
			h('p', { class: 'help' }, `Up to ${span(reach)} ago.`)),
	], [
		{ text: 'Cancel', value: '' },
		{ text: 'Show what changes', value: 'yes', look: 'primary' },
	]);
	const time = new Date(input.value);
	return choice && !Number.isNaN(time.getTime()) ? time.toISOString() : '';
}

/**
 * A time as a field has it.
 * @param {number} time
 */
const local = (time) =>
	new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);

/**
 * Sends the requests, each for the names that follow those of the one before, and adds up their answers.
 * @param {Alias} alias
 * @param {string} at
 * @param {string} title
 * @param {number} total
 * @param {boolean} dry
 */
async function send(alias, at, title, total, dry) {
	const none = () => ({ items: 0, bytes: 0, filenames: [] });
	/** @type {Past} */
	const plan = {
		began: '',
		restored: none(),
		replaced: none(),
		removed: none(),
		doubtful: none(),
		failed: [],
	};
	const { error, stopped } = await withProgress(title, total, async (progress) => {
		let cursor = '';
		do {
			/** @type {[string, string][]} */
			const fields = [['action', 'restore'], ['folder', '/'], ['at', at]];
			if (cursor) fields.push(['cursor', cursor]);
			if (dry) fields.push(['dry_run', '1']);
			/** @type {Past} */
			const page = await post(['items', alias.kind, alias.name], fields);
			plan.began ||= page.began;
			for (const [action] of actions) {
				plan[action].items += page[action].items;
				plan[action].filenames?.push(...page[action].filenames ?? []);
				if (action !== 'doubtful') progress.done(page[action].items);
			}
			plan.failed.push(...page.failed);
			for (const { filename, message } of page.failed) progress.fail(filename, message);
			cursor = page.cursor ?? '';
		} while (cursor && !progress.stopped());
	});
	return { plan, error, stopped };
}

/** @param {PastItems} items */
const namesOf = ({ filenames = [] }) => filenames.map((filename) => ({ filename }));
