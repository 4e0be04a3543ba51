// @ts-check
// Brings a library, or a folder of it, back to what it was at a time.
import { get, post } from '../lib/api.js';
import { h } from '../lib/dom.js';
import { moment, plural, size, span } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { folderOf, nameOf, parts } from '../lib/links.js';
import { failureList, showResult, withProgress } from '../lib/progress.js';
import { may } from '../lib/state.js';
import { announce, ask, explained, once } from '../lib/ui.js';
import { offerUndo } from '../lib/undo.js';
import { thumbnail } from './entries.js';
import { hasTrash, removedSince } from './restore.js';

const shownItems = 12; // of each action
const trashPages = 10; // at most, in which the pictures of earlier versions are looked for
const perPage = 200;

/** @typedef {Pick<Scope, 'alias' | 'folder'>} Place a library, or a folder of it */

/** What happens to items, with the words of a plan and of a result. @type {[PastAction, string, string][]} */
const actions = [
	['restored', 'Come back', 'back'],
	['replaced', 'Get the earlier version', 'with the earlier version'],
	['removed', 'Came later, and go to the trash', 'in the trash'],
	['doubtful', 'Stay, because they were stored at about that time', 'left as they are'],
];

/**
 * Whether this user may bring a library back to a time.
 * @param {Alias} alias
 */
const mayGoBack = (alias) => hasTrash(alias) && may('delete') && (!alias.overwrite || may('replace'));

/**
 * The button that brings a library or a folder back to a time, if this user may.
 * @param {Place} place
 * @param {(text: string) => Child} [look]
 */
export const pastButton = (place, look = (text) => text) =>
	mayGoBack(place.alias) && h('button', {
		type: 'button',
		'aria-label': 'As it was at …',
		title: 'As it was at …',
		onclick: (event) => once(event.currentTarget, () => goBack(place)),
	}, icon('restore'), look('As it was at …'));

/**
 * Asks for a time, shows what would change, and brings the place back to that time.
 * @param {Place} place
 */
async function goBack(place) {
	const at = await askTime(place);
	if (!at) return;
	const { plan, error } = await send(place, at, 'Looking for what changes', 0, true);
	if (error) {
		await showResult('Nothing has changed', h('p', { class: 'trouble' }, explained(error)));
		return;
	}
	const total = plan.restored.items + plan.replaced.items + plan.removed.items;
	const title = titleOf(place, moment(at));
	if (total === 0 && plan.doubtful.items === 0) {
		await showResult(title, h('p', null, 'Nothing has changed since then.'));
		return;
	}
	const choice = await ask(title, [
		pictures(place, at, plan),
		total > 0 && h('p', null, 'What is uploaded meanwhile stays.'),
	], total === 0 ? [{ text: 'Close', value: '', first: true }] : [
		{ text: 'Cancel', value: '', first: true },
		{ text: `Change ${plural(total, 'item')}`, value: 'yes', look: 'primary' },
	], { wide: true });
	if (choice) await carryOut(place, at, total);
}

/**
 * @param {Place} place
 * @param {string} time
 */
const titleOf = ({ folder }, time) =>
	folder ? `“${nameOf(folder)}” as it was at ${time}` : `As it was at ${time}`;

/**
 * The first items of each action. A picture appears when its item is found.
 * @param {Place} place
 * @param {string} at
 * @param {Past} plan
 */
function pictures({ alias, folder }, at, plan) {
	/** @type {Promise<Kept[]> | undefined} */
	let kept;
	let left = trashPages;
	/** @param {string} cursor */
	const page = async (cursor) => {
		const query = { trash: '1', folder, limit: perPage, cursor };
		/** @type {TrashPage} */
		const { result, next } = await get(['items', alias.kind, alias.name], query);
		return { result, next: --left > 0 ? next : '' };
	};
	/** @param {string} filename */
	const then = async (filename) =>
		(await (kept ??= removedSince(at, page))).find((entry) =>
			entry.filename === filename && new Date(entry.stored) <= new Date(at)
		);
	/** @param {string} filename */
	const now = async (filename) =>
		(await get(['items', alias.kind, alias.name, ...parts(filename)])).result[0];
	/** @param {Promise<Item | undefined>} item */
	function picture(item) {
		const box = h('span', { class: 'thumb' }, icon(alias.kind === 'img' ? 'items' : 'file'));
		item.then((found) => found && box.replaceWith(thumbnail(alias, found, '')), () => {});
		return box;
	}
	const sides = { restored: [then], replaced: [now, then], removed: [now], doubtful: [now] };
	return actions.map(([action, words]) => {
		const { items, bytes, filenames = [] } = plan[action];
		const more = items - Math.min(filenames.length, shownItems);
		return items > 0 && [
			h('p', null, h('strong', null, `${words}: `), `${plural(items, 'item')}, ${size(bytes)}`),
			h('ul', { class: `grid ${action}`, role: 'list', 'aria-label': words },
				filenames.slice(0, shownItems).map((filename) =>
					h('li', { title: filename },
						h('span', { class: 'sides' }, sides[action].map((find, i) => [
							i > 0 && icon('next'),
							picture(find(filename)),
						])), h('span', { class: 'name' }, nameOf(filename)),
						h('p', { class: 'muted small-text' }, folderOf(filename) || 'top folder'))
				)),
			more > 0 && h('p', { class: 'muted' }, `and ${more.toLocaleString('en')} more`),
		];
	});
}

/**
 * Brings the place back, and offers to undo that. The list that is shown by now is loaded anew.
 * @param {Place} place
 * @param {string} at
 * @param {number} total
 */
async function carryOut(place, at, total) {
	const { plan, error, stopped } = await send(place, at, 'Bringing back', total, false);
	dispatchEvent(new Event('undone'));
	const done = plan.restored.items + plan.replaced.items + plan.removed.items;
	const text = actions.filter(([action]) => plan[action].items > 0)
		.map(([action, , words]) => `${plural(plan[action].items, 'item')} ${words}`).join(', ');
	if (done > 0) offerUndo(`${text}.`, () => carryOut(place, plan.began, done));
	if (error || stopped || plan.failed.length > 0) {
		await showResult('Not all is as it was', text && h('p', null, `${text}.`),
			error && h('p', { class: 'trouble' }, explained(error)), failureList(plan.failed),
			(error || stopped) && h('p', null, 'Do it again to continue.'));
	} else if (done === 0) announce('Nothing has changed.');
}

/**
 * Asks for a time that the trash reaches. Returns it, and '' for none.
 * @param {Place} place
 */
async function askTime(place) {
	const { alias, folder } = place;
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
	const what = folder ? `in the folder “${folder}” and below it` : `of the library “${alias.name}”`;
	const choice = await ask(titleOf(place, '…'), [
		h('p', null, `All items ${what} become what they were at that time: what was deleted`,
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
 * @param {Place} place
 * @param {string} at
 * @param {string} title
 * @param {number} total
 * @param {boolean} dry
 */
async function send({ alias, folder }, at, title, total, dry) {
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
			const fields = [['action', 'restore'], ['folder', folder || '/'], ['at', at]];
			if (cursor) fields.push(['cursor', cursor]);
			if (dry) fields.push(['dry_run', '1']);
			/** @type {Past} */
			const page = await post(['items', alias.kind, alias.name], fields);
			plan.began ||= page.began;
			for (const [action] of actions) {
				plan[action].items += page[action].items;
				plan[action].bytes += page[action].bytes;
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
