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

/** Sends a request. Returns the answer, which is JSON in success and in failure. */
async function send(method, path, body, headers = {}) {
	const response = await fetch(server + path, { method, body, headers });
	return response.json();
}

/** Sends a change again until it is answered. With the key it is made once, also if only the answer was lost. */
async function sendSafely(method, path, body, headers) {
	if (method !== 'GET') headers['Idempotency-Key'] = randomUUID();
	for (let attempt = 1; ; attempt++) {
		try {
			return await send(method, path, body, headers);
		} catch (error) {
			if (attempt === 4) throw error;
			await new Promise((resolve) => setTimeout(resolve, attempt * 1000));
		}
	}
}

export async function getToken() {
	const answer = await send('POST', '/api/auth/generateToken', new URLSearchParams({ api_key: apiKey, password }));
	if (!answer.success) throw new Error(`no token: ${answer.message}`);
	return answer.token;
}

/** Sends a request with a token. Returns the answer to its success. */
async function call(token, method, path, body, headers = {}) {
	const answer = await sendSafely(method, path, body, { Authorization: `Bearer ${token}`, ...headers });
	if (!answer.success) throw new Error(answer.errors.map((e) => [e.filename, e.message].filter(Boolean).join(': ')).join('\n'));
	return answer;
}

/**
 * Uploads images, all or none, from files and from addresses. Returns {full_path, filename} of each, and webp if it
 * has a variant.
 */
export async function uploadImages(token, paths, fields = {}, addresses = []) {
	const form = new FormData();
	for (const [name, value] of Object.entries(fields)) form.append(name, value);
	for (const path of paths) form.append('files[]', new Blob([await readFile(path)]), basename(path));
	for (const address of addresses) form.append('url', address);
	return (await call(token, 'POST', '/api/upload/image', form)).result;
}

const itemPath = (alias, filename) => `/api/items/image/${alias}/${filename.split('/').map(encodeURIComponent).join('/')}`;

/** Returns the images of a folder, page by page. */
export async function* listImages(token, alias, folder = '') {
	for (let cursor = ''; cursor !== undefined; ) {
		const page = await call(token, 'GET', `/api/items/image/${alias}?${new URLSearchParams({ folder, cursor })}`);
		yield* page.result;
		cursor = page.next;
	}
}

/** Deletes one image. */
export async function deleteImage(token, alias, filename) {
	await call(token, 'DELETE', itemPath(alias, filename));
}

/** Deletes up to 1,000 images with one request. Returns {filename, message} of those that are not deleted. */
export async function deleteImages(token, alias, filenames) {
	const form = new URLSearchParams([['action', 'delete'], ...filenames.map((filename) => ['filename', filename])]);
	const answer = await call(token, 'POST', `/api/items/image/${alias}`, form);
	return answer.result.filter((one) => !one.deleted);
}

/** Moves an image with the field to, or copies it with the field copy_to. Returns the new one. */
export async function transferImage(token, alias, filename, fields) {
	return (await call(token, 'POST', itemPath(alias, filename), new URLSearchParams(fields))).result[0];
}

/** Replaces an image, if nobody else has replaced it. The alias must overwrite. */
export async function replaceImage(token, alias, filename, path) {
	const [image] = (await call(token, 'GET', itemPath(alias, filename))).result;
	return (await call(token, 'PUT', itemPath(alias, filename), await readFile(path), { 'If-Match': image.etag })).result[0];
}
