// @ts-check
// The panel: the page of each address, and the frame of all pages.
import { get, send } from './lib/api.js';
import { caddyfileButton } from './lib/caddyfile.js';
import { byId, fill, h, rich } from './lib/dom.js';
import { icon } from './lib/icons.js';
import { guard, isBusy, mayAct, mayConfigure, preference, state } from './lib/state.js';
import { busyWhile, closeDialogs, confirm, failed, pageHead, waiting, wide } from './lib/ui.js';
import { accounts } from './pages/accounts.js';
import { aliases } from './pages/aliases.js';
import { health } from './pages/health.js';
import { items } from './pages/items.js';
import { storages } from './pages/storages.js';
import { trash } from './pages/trash.js';
import { uploads } from './pages/uploads.js';

/** @type {Record<string, (context: PageContext) => Promise<Page>>} */
const pages = { storages, aliases, accounts, items, trash, uploads, health };
/** @type {Record<string, string>} */
const titles = {
	storages: 'Storages',
	aliases: 'Aliases',
	accounts: 'Accounts',
	items: 'Items',
	trash: 'Trash',
	uploads: 'Uploads',
	health: 'Health',
};
// A user with items only has no other pages.
const shownPages = () => (state.session.items_only ? ['items', 'trash'] : Object.keys(pages));
const inNav = () => shownPages().filter((name) => name !== 'trash'); // which belongs to the items
const main = byId('main');
/** @type {{hash: string, name: string, page: Page | null, leave: AbortController}} */
let shown = { hash: '', name: '', page: null, leave: new AbortController() };
let confirming = false;

/**
 * The page of an address.
 * @param {string} hash
 * @returns {Route}
 */
function parse(hash) {
	const [path, search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	const [name, ...segments] = path.split('/').filter(Boolean).map(decode);
	return {
		name: shownPages().includes(name) ? name : shownPages()[0],
		segments,
		query: Object.fromEntries(new URLSearchParams(search)),
	};
}

/** @param {string} segment */
function decode(segment) {
	try {
		return decodeURIComponent(segment);
	} catch {
		return segment;
	}
}

/**
 * Shows the page of the address.
 * @param {boolean} [focus]
 * @param {{aliases: Alias[]}} [first] what the first page needs and is there already
 */
async function show(focus = true, first) {
	const route = parse(location.hash);
	if (shown.name === route.name && shown.page?.update?.(route)) {
		shown.hash = location.hash;
		return;
	}
	if (state.unsaved() && !await leaveAllowed()) return;
	shown.leave.abort();
	/** @type {typeof shown} */
	const current = {
		hash: location.hash,
		name: route.name,
		page: null,
		leave: new AbortController(),
	};
	shown = current;
	guard(() => false);
	closeDialogs();
	markNav(route.name);
	const held = document.activeElement?.id;
	const slow = setTimeout(() => {
		if (current === shown) fill(main, waiting());
	}, 250);
	const page = await load(route, current, first);
	clearTimeout(slow);
	if (current !== shown) return;
	current.page = page;
	document.title = `${page.title} · Media`;
	fill(main, page.content);
	for (const area of state.uploadAreas.values()) area.away();
	if (!focus) return;
	refreshPublicNotice();
	scrollTo(0, 0);
	/** @type {HTMLElement | null} */
	const same = held ? main.querySelector(`select#${CSS.escape(held)}`) : null;
	(same ?? main.querySelector('h1') ?? main).focus({ preventScroll: true });
}

/**
 * @param {Route} route
 * @param {{leave: AbortController}} current
 * @param {{aliases: Alias[]}} [first]
 * @returns {Promise<Page>}
 */
async function load(route, current, first) {
	try {
		return await pages[route.name]({
			...route,
			first,
			signal: current.leave.signal,
			reload: () => show(),
		});
	} catch (error) {
		return {
			title: titles[route.name],
			content: [pageHead(titles[route.name]), failed(error, () => show())],
		};
	}
}

// Asks before unsaved input is lost. If the user stays, the address returns to the form.
async function leaveAllowed() {
	const wanted = location.hash;
	history.pushState(null, '', shown.hash || '#/');
	if (confirming) return false;
	confirming = true;
	const leave = await confirm('Leave without saving?', h('p', null, state.unsaved()), 'Leave');
	confirming = false;
	if (!leave) return false;
	guard(() => false);
	location.hash = wanted;
	return false; // hashchange shows the new address
}

/** @param {string} name */
function markNav(name) {
	for (const link of byId('nav').querySelectorAll('a')) {
		if (link.dataset.page === (name === 'trash' ? 'items' : name))
			link.setAttribute('aria-current', 'page');
		else link.removeAttribute('aria-current');
	}
}

/** @param {Session} session */
function frame(session) {
	byId('nav').hidden = inNav().length < 2;
	fill(byId('nav'),
		h('ul', { role: 'list' },
			inNav().map((name) =>
				h('li', null,
					h('a', { href: `#/${name}`, 'data-page': name }, icon(name),
						h('span', null, titles[name])))
			)));
	fill(byId('user'), session.user && h('span', null, 'Logged in as ', h('strong', null, session.user)),
		session.log_out
			&& h('button', {
				type: 'button',
				class: 'small',
				onclick: (event) => logOut(event.currentTarget),
			}, 'Log out'));
	fill(byId('notices'), publicNotice(session), readOnlyNotice(session), persistenceNotice(session));
}

/** @param {HTMLElement} button */
function logOut(button) {
	return busyWhile(button, 'Logging out failed', async () => {
		try {
			await send('DELETE', ['session']);
		} catch (error) {
			if (!error.loggedOut) throw error;
		}
		location.reload();
	});
}

/** @param {Session} session */
function publicNotice(session) {
	if (!session.public_password) return null;
	return h('aside', { id: 'public-password', class: 'notice warn', 'aria-label': 'Public password' },
		icon('down'),
		h('div', null, h('p', null, h('strong', null, 'Everyone knows a password of this server')),
			h('p', null, rich(session.public_password))));
}

// Updates the notice of the public password, or removes it.
async function refreshPublicNotice() {
	const notice = document.getElementById('public-password');
	if (!notice) return;
	const session = await get(['session']).catch(() => state.session);
	notice.replaceWith(publicNotice(session) ?? '');
}

/** @param {Session} session */
function readOnlyNotice(session) {
	if (mayConfigure() || session.items_only) return null;
	const title = mayAct() ? 'The configuration is read-only' : 'You have read-only access';
	return h('aside', { class: 'notice', 'aria-label': 'Read only' }, icon('lock'),
		h('div', null, h('p', null, h('strong', null, title)), h('p', null, rich(session.why_not))));
}

/** @param {Session} session */
function persistenceNotice(session) {
	if (session.lasting || !mayConfigure() || preference('lasting', undefined, 'sessionStorage')) return null;
	const known = preference('lasting-seen');
	preference('lasting-seen', 'yes');
	const dismiss = () => {
		preference('lasting', 'dismissed', 'sessionStorage');
		notice.remove();
		main.focus();
	};
	const notice = h('aside', { class: 'notice warn', 'aria-label': 'Changes are lost on restart' },
		icon('down'),
		h('details', { open: wide().matches && !known }, h('summary', null, 'Changes are lost on restart'),
			h('p', null, rich(session.lasting_note)),
			h('div', { class: 'actions' }, caddyfileButton(),
				h('a', { class: 'button', href: 'api/config', download: '' }, 'Download the configuration'))),
		h('button', {
			type: 'button',
			class: 'plain',
			'aria-label': 'Dismiss',
			title: 'Dismiss',
			onclick: dismiss,
		}, icon('cross')));
	return notice;
}

async function start() {
	fill(main, waiting());
	try {
		const early = get(['aliases']).catch(() => undefined); // index.html has requested both
		const session = await get(['session']);
		state.session = session;
		frame(session);
		show(false, await early);
	} catch (error) {
		fill(main, h('h1', null, 'Media'), failed(error, start));
	}
}

byId('skip').addEventListener('click', (event) => {
	event.preventDefault(); // the hash is the address of a page
	main.focus();
});
addEventListener('hashchange', () => show());
addEventListener('newpassword', refreshPublicNotice);
addEventListener('beforeunload', (event) => {
	if (state.unsaved() || isBusy()) event.preventDefault();
});
start();
