// @ts-check
// Accounts: API keys, their passwords and tokens.
import { get, read, send } from '../lib/api.js';
import { h, rich } from '../lib/dom.js';
import { entryForm, nameField, readEntry, removeButton, section } from '../lib/entry.js';
import { field, ticksField } from '../lib/fields.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { keyWords, validKey } from '../lib/names.js';
import { s3Settings } from '../lib/snippets.js';
import { guard, mayAct, mayConfigure } from '../lib/state.js';
import { announce, ask, busyWhile, confirm, copyField, empty, facts, listLink, pageHead,
	rowList } from '../lib/ui.js';

/**
 * The page of all accounts, or of one.
 * @param {PageContext} context
 * @returns {Promise<Page>}
 */
export async function accounts({ segments, query, signal, reload }) {
	if ((segments.length > 0 || query.add) && mayConfigure()) return editPage(segments[0] ?? '', signal);
	const { accounts: list, s3_endpoints: endpoints } = await get(['accounts'], {}, signal);
	const add = mayConfigure()
		&& h('a', { class: 'button primary', href: '#/accounts?add=1' }, icon('plus'), 'Add account');
	return {
		title: 'Accounts',
		content: [
			pageHead('Accounts', add),
			h('p', { class: 'lead' },
				'Accounts are for programs. Each has an API key and a password, which it exchanges for tokens. ',
				'The requests of clients are described in ',
				h('a', { href: 'api/openapi.json', download: '' }, 'the OpenAPI document'), '.'),
			list.length === 0
				? empty('accounts', 'No account yet', 'Uploads over HTTP are refused until one exists.',
					add && add.cloneNode(true))
				: rowList('Accounts',
					list.map((/** @type {Account} */ account) => row(account, endpoints, reload))),
		],
	};
}

/**
 * @param {Account} account
 * @param {S3Endpoint[]} endpoints
 * @param {() => void} reload
 */
function row({ api_key: key, aliases = [], may, trusted, buckets }, endpoints, reload) {
	return h('li', { class: 'row' }, h('div', { class: 'row-icon' }, icon('accounts')),
		h('div', { class: 'row-main' },
			h('h2', { class: 'path' },
				mayConfigure() ? h('a', { href: `#/accounts/${encodeURIComponent(key)}` }, key) : key,
				buckets && h('span', { class: 'tag' }, 'S3')),
			h('p', null, h('span', { class: 'muted' }, `May ${may.join(', ')} in `),
				aliases.length === 0 ? 'all aliases' : aliases.join(', '),
				trusted && ', for the users of another login')),
		h('div', { class: 'row-actions' }, mayConfigure()
			&& h('a', {
				class: 'button',
				href: `#/accounts/${encodeURIComponent(key)}`,
				'aria-label': `Edit ${key}`,
			}, 'Edit'), buckets
			&& h('button', {
				type: 'button',
				'aria-label': `S3 settings of ${key}`,
				onclick: () => showS3(key, buckets, endpoints),
			}, 'S3 settings'), !trusted && mayConfigure()
			&& h('button', {
				type: 'button',
				'aria-label': `New password for ${key}`,
				onclick: (event) => renew(event.currentTarget, key),
			}, 'New password'), !trusted && mayAct()
			&& h('button', {
				type: 'button',
				'aria-label': `End tokens of ${key}`,
				onclick: (event) => endTokens(event.currentTarget, key),
			}, 'End tokens'), mayConfigure() && removeButton({
				section: 'accounts',
				name: key,
				what: 'account',
				warning: trusted
					? 'Its users can no longer upload. Their uploads stay.'
					: 'It can no longer log in, and its tokens end at once. Its uploads stay.',
			}, reload)));
}

/**
 * @param {string} key
 * @param {string[]} buckets
 * @param {S3Endpoint[]} endpoints
 */
function showS3(key, buckets, endpoints) {
	const endpoint = endpoints[0] ?? { address: 'https://s3.example.com', region: 'us-east-1' };
	return ask(`S3 settings of “${key}”`, [
		endpoints.length === 0 && [
			h('p', null, rich(
				'Caddy has no site with `media_s3` yet. Add one to the Caddyfile, with a host name of yours:',
			)),
			copyField('Site', 's3.example.com {\n\tmedia_s3\n}'),
		],
		facts({ Buckets: buckets.join(', ') || 'none' }),
		Object.entries(s3Settings(key, endpoint)).map(([title, text]) => copyField(title, text)),
		h('p', { class: 'help' },
			rich('Write the secret of the account in place of “the S3 secret”: it is never shown here. '
				+ 'AWS CLI before 2.13 also needs `--endpoint-url "$AWS_ENDPOINT_URL"`.')),
	], [{ text: 'Close', value: '', first: true }], { wide: true });
}

/**
 * @param {HTMLElement} button
 * @param {string} key
 */
async function renew(button, key) {
	const text = 'Its current password stops working, and its tokens end at once. '
		+ 'All users of the account need the new password.';
	if (!await confirm(`Set a new password for “${key}”?`, h('p', null, text), 'Set new password')) return;
	await busyWhile(button, 'The password was not changed', async () => {
		const { body: entry, etag } = await read(['config', 'accounts', key]);
		const { body } = await send('PUT', ['config', 'accounts', key], {
			body: { value: entry.value, new_password: true },
			etag,
		});
		await showPassword(body);
	});
}

/**
 * @param {HTMLElement} button
 * @param {string} key
 */
async function endTokens(button, key) {
	const text = 'All users of the account must log in again, with the same password.';
	if (!await confirm(`End all tokens of “${key}”?`, h('p', null, text), 'End tokens')) return;
	await busyWhile(button, 'The tokens were not ended', async () => {
		const { body } = await send('DELETE', ['accounts', key, 'tokens']);
		announce(`${plural(body.ended, 'token')} of “${key}” ended.`);
	});
}

/** @param {{api_key: string, password: string}} account */
async function showPassword({ api_key: key, password }) {
	dispatchEvent(new Event('newpassword'));
	guard(() => true, 'The new password will not be shown again.');
	await ask('The new password', [
		h('p', { class: 'notice' }, icon('lock'),
			'It is shown only now, because only its hash is stored. Copy it to somewhere safe before you close this.'),
		copyField('API key', key),
		copyField('Password', password),
	], [{ text: 'I have saved it', value: 'saved', look: 'primary' }], { required: true });
	guard(() => false);
}

/**
 * @param {string} key
 * @param {AbortSignal} signal
 * @returns {Promise<Page>}
 */
async function editPage(key, signal) {
	const [{ aliases }, kinds, { body: entry, etag }] = await Promise.all([
		get(['aliases'], {}, signal),
		get(['kinds'], {}, signal),
		readEntry('accounts', key, signal),
	]);
	const form = entryForm({
		section: 'accounts',
		what: 'account',
		name: key,
		current: entry,
		etag,
		back: '#/accounts',
		build: (current, isNew) => build(aliases, kinds.account.options, current, isNew),
		saved: async (answer) => {
			if (answer.password) await showPassword(answer);
		},
	});
	const title = key || 'Add account';
	return {
		title,
		content: [listLink('Accounts'), pageHead(title), !key
			&& h('p', { class: 'lead' }, 'A password is generated when you add the account, and shown once. '
				+ 'An account for the users of another login (Trust) has none.'), form.element],
	};
}

/**
 * @param {Alias[]} aliases
 * @param {Option[]} options
 * @param {Entry} current
 * @param {boolean} isNew
 */
function build(aliases, options, current, isNew) {
	const help = 'The name with which the account logs in. It is no secret. It cannot be changed later.';
	const key = isNew ? nameField({ name: 'api_key', help }, validKey, keyWords, suggestion()) : null;
	const limits = aliasField(aliases, current.value.aliases ?? []);
	const rights = options.filter(({ name }) => name !== limits.path).map((option) =>
		field(option, {
			path: option.name,
			value: current.value[option.name],
			isSet: current.secrets.includes(option.name),
		})
	);
	return {
		element: h('div', { class: 'sections' }, key && section('', key.element),
			section('', h('div', { class: 'fields' }, limits.element, rights.map(({ element }) => element)))),
		fields: () => (key ? [key, limits, ...rights] : [limits, ...rights]),
		extra: () => (isNew && !rights.some(isTrust) ? { new_password: true } : {}),
	};
}

// Whether a field names the users of another login, who need no password.
const isTrust = (/** @type {Field} */ { path, read }) => path.startsWith('trust') && Boolean(read());

// Easy to read aloud, and most likely unused.
function suggestion() {
	const letters = 'abcdefghjkmnpqrstuvwxyz23456789';
	return 'site-'
		+ [...crypto.getRandomValues(new Uint8Array(8))].map((n) => letters[n % letters.length]).join('');
}

/**
 * @param {Alias[]} aliases
 * @param {string[]} chosen
 */
function aliasField(aliases, chosen) {
	const kindsOf = (/** @type {string} */ name) =>
		aliases.filter((alias) => alias.name === name).map((
			{ kind },
		) => (kind === 'img' ? 'images' : 'files')).join(' and ') || 'no such alias';
	return ticksField({
		name: 'aliases',
		help: 'Tick none to allow all aliases, including later ones.',
		words: [...new Set(aliases.map(({ name }) => name))].sort(),
		names: true,
	}, { path: 'aliases', value: chosen }, { title: 'May use', note: kindsOf });
}
