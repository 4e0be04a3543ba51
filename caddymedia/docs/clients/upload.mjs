// Uploads images:  node upload.mjs photo.jpg ...
// MEDIA_SERVER (https://media.example.com), MEDIA_API_KEY and MEDIA_PASSWORD are in the environment.
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';

const [server, apiKey, password] = ['MEDIA_SERVER', 'MEDIA_API_KEY', 'MEDIA_PASSWORD'].map((name) => {
	if (process.env[name]) return process.env[name];
	console.error(`set ${name} in the environment`);
	process.exit(1);
});

/** Sends a form. Returns the answer, which is JSON in success and in failure. */
async function post(path, body, headers = {}) {
	const response = await fetch(server + path, { method: 'POST', body, headers });
	return response.json();
}

async function getToken() {
	const answer = await post('/api/auth/generateToken', new URLSearchParams({ api_key: apiKey, password }));
	if (!answer.success) throw new Error(`no token: ${answer.message}`);
	return answer.token;
}

/** Uploads images, all or none. Returns {full_path, filename} of each, and webp if it has a variant. */
async function uploadImages(token, paths, fields = {}) {
	const form = new FormData();
	for (const [name, value] of Object.entries(fields)) form.append(name, value);
	for (const path of paths) form.append('files[]', new Blob([await readFile(path)]), basename(path));
	const answer = await post('/api/upload/image', form, { Authorization: `Bearer ${token}` });
	if (!answer.success) throw new Error(answer.errors.map((e) => [e.filename, e.message].filter(Boolean).join(': ')).join('\n'));
	return answer.result;
}

try {
	for (const item of await uploadImages(await getToken(), process.argv.slice(2), { alias: 'content' })) {
		console.log(item.full_path, item.filename);
	}
} catch (error) {
	// fetch says why a server cannot be reached in the cause.
	console.error([error.message, error.cause?.message].filter(Boolean).join(': '));
	process.exitCode = 1;
}
