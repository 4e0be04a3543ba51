// The panel: which page an address shows, and what surrounds all pages.
import { h, fill, rich } from './dom.js';
import { get } from './api.js';
import { confirm, failed, pageHead } from './ui.js';
import { icon } from './icons.js';
import { guard, isBusy, mayAct, mayConfigure, setSession, wouldLose } from './state.js';
import { storages } from './storages.js';
import { aliases } from './aliases.js';
import { accounts } from './accounts.js';
import { items } from './items.js';
import { health } from './health.js';

const pages = { storages, aliases, accounts, items, health };
const titles = { storages: 'Storages', aliases: 'Aliases', accounts: 'Accounts', items: 'Items', health: 'Health' };
const main = document.getElementById('main');
let shown = { hash: '', page: null, leave: new AbortController() };

/** The page of an address: {name, segments, query}. */
function parse(hash) {
	const [path, search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
	const [name, ...segments] = path.split('/').filter(Boolean).map(decode);
	return { name: pages[name] ? name : 'storages', segments, query: Object.fromEntries(new URLSearchParams(search)) };
}

function decode(segment) {
	try {
		return decodeURIComponent(segment);
	} catch {
		return segment;
	}
}

async function show(focus = true) {
	const route = parse(location.hash);
	if (shown.name === route.name && shown.page?.update?.(route)) {
		shown.hash = location.hash;
		return;
	}
	if (wouldLose() && !await leaveAllowed()) return;
	shown.leave.abort();
	const current = shown = { hash: location.hash, name: route.name, page: null, leave: new AbortController() };
	guard(() => false);
	for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close('');
	markNav(route.name);
	const waiting = setTimeout(() => { if (current === shown) fill(main, h('p', { class: 'muted waiting', role: 'status' }, h('span', { class: 'spinner' }), 'Loading …')); }, 250);
	const page = await load(route, current);
	clearTimeout(waiting);
	if (current !== shown) return;
	current.page = page;
	document.title = `${page.title} · Media`;
	fill(main, page.content);
	if (!focus) return;
	scrollTo(0, 0);
	(main.querySelector('h1') ?? main).focus({ preventScroll: true });
}

async function load(route, current) {
	try {
		return await pages[route.name]({ ...route, signal: current.leave.signal, again: () => show() });
	} catch (error) {
		return { title: titles[route.name], content: [pageHead(titles[route.name]), failed(error, () => show())] };
	}
}

// Asks before what was typed is lost; without leave the address goes back to the form.
async function leaveAllowed() {
	const wanted = location.hash;
	history.pushState(null, '', shown.hash || '#/storages');
	if (!await confirm('Leave without saving?', h('p', null, 'What you have typed is lost then.'), 'Leave')) return false;
	guard(() => false);
	location.hash = wanted;
	return false; // the new address shows itself
}

function markNav(name) {
	for (const link of document.querySelectorAll('#nav a')) {
		if (link.dataset.page === name) link.setAttribute('aria-current', 'page');
		else link.removeAttribute('aria-current');
	}
}

function frame(session) {
	fill(document.getElementById('nav'), h('ul', { role: 'list' }, Object.keys(pages).map((name) =>
		h('li', null, h('a', { href: `#/${name}`, 'data-page': name }, icon(name), h('span', null, titles[name]))))));
	fill(document.getElementById('user'), session.user && ['Signed in as ', h('strong', null, session.user)]);
	fill(document.getElementById('notices'), readOnlyNotice(session), lastingNotice(session));
}

function readOnlyNotice(session) {
	if (mayConfigure()) return null;
	const title = mayAct() ? 'The configuration can only be looked at' : 'You can look, but not change anything';
	return h('aside', { class: 'notice', 'aria-label': 'Read only' }, icon('lock'), h('div', null, h('p', null, h('strong', null, title)), h('p', null, rich(session.why_not))));
}

function lastingNotice(session) {
	if (session.lasting || !mayConfigure() || dismissed()) return null;
	const notice = h('aside', { class: 'notice warn', 'aria-label': 'Changes do not last' }, icon('down'),
		h('div', null, h('p', null, h('strong', null, 'Changes do not outlast a restart')), h('p', null, rich(session.lasting_note)),
			h('div', { class: 'actions' },
				h('a', { class: 'button', href: 'api/config', download: '' }, 'Download the configuration'),
				h('button', { type: 'button', onclick: () => {
					dismissed(true);
					notice.remove();
					main.focus();
				} }, 'Dismiss'))));
	return notice;
}

function dismissed(now) {
	try {
		if (now) sessionStorage.setItem('media-admin.lasting', 'dismissed');
		return sessionStorage.getItem('media-admin.lasting') === 'dismissed';
	} catch {
		return false;
	}
}

async function start() {
	try {
		const session = await get(['session']);
		setSession(session);
		frame(session);
		show(false);
	} catch (error) {
		fill(main, h('h1', null, 'Media'), failed(error, start));
	}
}

document.querySelector('.skip').addEventListener('click', (event) => {
	event.preventDefault(); // the address belongs to the pages
	main.focus();
});
addEventListener('hashchange', () => show());
addEventListener('beforeunload', (event) => { if (wouldLose() || isBusy()) event.preventDefault(); });
start();
