// The client of the media service for your programs. It needs only Node 18 or later.
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';

const [server, apiKey, password] = ['MEDIA_SERVER', 'MEDIA_API_KEY', 'MEDIA_PASSWORD'].map((name) => {
	if (process.env[name]) return process.env[name];
	console.error(`set ${name} in the environment`);
	process.exit(1);
});

/** The service refuses files of a user. The message is for that user. */
export class MediaRefusal extends Error {}

/** Sends a request. Returns the status and the answer, which is JSON in success and in failure. */
async function send(method, path, body, headers = {}) {
	const signal = path.startsWith('/api/auth/') ? AbortSignal.timeout(30_000) : undefined; // a visitor waits for a ticket
	const response = await fetch(server + path, { method, body, headers, signal });
	const answer = response.status === 204 ? { success: true } : await response.json();
	return { status: response.status, ...answer };
}

/** Sends a change again until it is answered. With the key it is made once, also if only the answer was lost. */
async function sendSafely(method, path, body, headers, key) {
	if (key && method !== 'GET') headers['Idempotency-Key'] = key;
	for (let attempt = 1; ; attempt++) {
		try {
			return await send(method, path, body, headers);
		} catch (error) {
			if (attempt === 4) throw error;
			await new Promise((resolve) => setTimeout(resolve, attempt * 1000));
		}
	}
}

let token; // a promise of {token, expires_at}, which all requests of this process share

async function login() {
	const answer = await send('POST', '/api/auth/generateToken', new URLSearchParams({ api_key: apiKey, password }));
	if (!answer.success) throw new Error(`no token: ${answer.message}`);
	return answer;
}

const renew = () => (token = login().catch((error) => {
	token = undefined; // so that the next request tries again
	throw error;
}));

/** Returns the token of this process, or a new one if it ends soon or was refused. */
async function getToken(refused) {
	const held = token ?? renew();
	const kept = await held;
	if (kept.token !== refused && kept.expires_at > Date.now() / 1000 + 60) return kept.token;
	return (await (token === held ? renew() : token ?? renew())).token;
}

/** Sends a request with the token. Returns the answer to its success. */
async function call(method, path, body, headers = {}, key = randomUUID()) {
	const request = (token) => sendSafely(method, path, body, { Authorization: `Bearer ${token}`, ...headers }, key);
	const first = await getToken();
	let answer = await request(first);
	if (answer.status === 401) answer = await request(await getToken(first)); // the token has ended before its time
	if (answer.success) return answer;
	if (!answer.errors) throw new Error(answer.message); // of a ticket or a signature, which no file is to blame for
	const message = answer.errors.map((e) => [e.filename, e.message].filter(Boolean).join(': ')).join('\n');
	throw [400, 404, 409, 413, 415].includes(answer.status) ? new MediaRefusal(message) : new Error(message);
}

async function upload(kind, files, fields, addresses = []) {
	const form = new FormData();
	for (const [name, value] of Object.entries(fields)) form.append(name, value);
	for (const file of files) {
		if (typeof file === 'string') form.append('files[]', new Blob([await readFile(file)]), basename(file));
		else form.append('files[]', file);
	}
	for (const address of addresses) form.append('url', address);
	return (await call('POST', `/api/upload/${kind}`, form)).result;
}

/**
 * Uploads images, all or none, from paths and Files, as the field of a form has them, and from addresses. Returns
 * {full_path, filename} of each, webp if it has a variant, renditions and facts if the alias has some.
 */
export const uploadImages = (files, fields = {}, addresses = []) => upload('image', files, fields, addresses);

/** Uploads files of any kind that the alias accepts, as uploadImages does. */
export const uploadFiles = (files, fields = {}, addresses = []) => upload('file', files, fields, addresses);

/** Returns the segments of a path. fetch removes dot segments, which would lead to another one. */
function encoded(...segments) {
	const name = segments.join('/');
	if (name.split('/').some((part) => ['', '.', '..'].includes(part))) {
		throw new MediaRefusal(`the name "${name}" has a part that is empty, . or ..`);
	}
	return segments.map(encodeURIComponent).join('/');
}

/** Returns the path of an alias or an item. */
const itemPath = (...segments) => `/api/items/${encoded(...segments)}`;

/** Returns the items of a folder, page by page. The kind is image or file; list has more parameters of a list. */
export async function* items(kind, alias, folder = '', list = {}) {
	for (let cursor = ''; cursor !== undefined; ) {
		const page = await call('GET', `${itemPath(kind, alias)}?${new URLSearchParams({ folder, cursor, ...list })}`);
		yield* page.result;
		cursor = page.next;
	}
}

/** Calls a function with up to 1,000 filenames at a time. Returns all results. */
async function inSets(filenames, request) {
	const results = [];
	for (let i = 0; i < filenames.length; i += 1000) {
		results.push(...await request(filenames.slice(i, i + 1000).map((filename) => ['filename', filename])));
	}
	return results;
}

/** Deletes items, 1,000 with each request. Returns {filename, message} of those that are not deleted. */
export async function remove(kind, alias, filenames) {
	const results = await inSets(filenames, async (fields) =>
		(await call('POST', itemPath(kind, alias), new URLSearchParams([['action', 'delete'], ...fields]))).result);
	return results.filter((one) => !one.deleted);
}

/** Moves an item with the field to, or copies it with the field copy_to. Returns the new one. */
export async function transfer(kind, alias, filename, fields) {
	return (await call('POST', itemPath(kind, alias, ...filename.split('/')), new URLSearchParams(fields))).result[0];
}

/** Replaces an item, if nobody else has replaced it. The alias must overwrite. */
export async function replace(kind, alias, filename, path) {
	const address = itemPath(kind, alias, ...filename.split('/'));
	const [item] = (await call('GET', address)).result;
	return (await call('PUT', address, await readFile(path), { 'If-Match': item.etag })).result[0];
}

/** Signs addresses of items of a private alias. Returns {filename, url, expires_at} of each. */
export async function sign(kind, alias, filenames, seconds = 3600, fields = {}) {
	return inSets(filenames, async (names) => (await call('POST', '/api/sign', new URLSearchParams(
		[...Object.entries({ kind, alias, expires_in: seconds, ...fields }), ...names]))).result);
}

/**
 * Requests a ticket for the browser of a user. Returns {ticket, expires_at}. With the field hold,
 * uploads vanish after so many seconds unless they are kept.
 */
export async function getTicket(fields) {
	const { ticket, expires_at } = await call('POST', '/api/auth/ticket', new URLSearchParams(fields));
	return { ticket, expires_at };
}

/**
 * Stores held uploads as items, all or none, up to 200. Returns what uploadImages does, also if it is
 * repeated. An empty id of a form, as for a refused file, is left out. The fields are sub_folder, and
 * filename for a single one.
 */
export async function keep(kind, alias, ids, fields = {}) {
	const held = ids.filter(Boolean).map((id) => ['held', id]);
	if (held.length === 0) return [];
	const form = [['action', 'keep'], ...Object.entries(fields), ...held];
	return (await call('POST', itemPath(kind, alias), new URLSearchParams(form), {}, '')).result; // the ids are its key
}

const heldPath = (kind, id) => `/api/upload/${encoded(kind, 'held', id)}`;

/** Describes a held upload: {held, name, size, content_type, expires_at}, and facts if there are some. */
export const getHeld = async (kind, id) => (await call('GET', heldPath(kind, id))).result[0];

/** Ends a held upload. */
export const release = async (kind, id) => { await call('DELETE', heldPath(kind, id)); };

/** Describes an error in a line. fetch says why a server cannot be reached in the cause. */
export const reason = (error) => [error.message, error.cause?.message].filter(Boolean).join(': ');
