// Shared by the scripts that upload files by tus: the gate between page and service, and the requests.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { assert, facts } from './lib.mjs';

export const file = (name) => path.join(facts.more.folder, name);

/** Sets what the gate does after so many bytes: 'cut', 'hold' or 'release'. Returns whether it holds a connection. */
export async function gate(page, act = '', after = 0) {
	const answer = await page.request.get(`${facts.panel}gate?act=${act}&after=${after}`);
	return await answer.text() === 'true';
}

/** Waits until the gate holds a connection. */
export async function untilHeld(page) {
	for (const end = Date.now() + 30_000; !await gate(page);) {
		assert.ok(Date.now() < end, 'no connection is held');
		await page.waitForTimeout(20);
	}
}

/** Logs in at the site of the page. */
export const logIn = (page) => page.request.get(`${facts.panel}log-in`);

/** Records the requests of a page to the service, but not those of the browser itself: [{method, offset, ticket}]. */
export function record(page) {
	const requests = [];
	page.on('request', (request) => {
		if (request.url().startsWith(`${facts.service}/api/upload`) && request.method() !== 'OPTIONS') {
			const { 'upload-offset': offset = 0, authorization: ticket } = request.headers();
			requests.push({ method: request.method(), offset: Number(offset), ticket });
		}
	});
	return requests;
}

/** Answers the first PATCH of the next upload as one that has outlasted its ticket. */
export const outlast = (page) => page.route('**/resumable/*', (route) =>
	route.fulfill({ status: 401, headers: { 'Access-Control-Allow-Origin': '*' } }), { times: 1 });

/** Asserts that an upload was continued with a new ticket after outlast. */
export function renewed(requests) {
	assert.deepEqual(requests.map(({ method }) => method), ['POST', 'PATCH', 'HEAD', 'PATCH']);
	const [, old, ...later] = requests.map(({ ticket }) => ticket);
	assert.ok(later[0] !== old && later[1] === later[0], 'the ticket is not renewed once');
}

/** Asserts that the upload was created once, and continued behind its first bytes. */
export function continued(requests, created = 1) {
	assert.equal(requests.filter(({ method }) => method === 'POST').length, created, JSON.stringify(requests));
	assert.ok(requests.some(({ method, offset }) => method === 'PATCH' && offset > 0), JSON.stringify(requests));
}

/** Waits until files are uploaded, saves their form, and asserts that the items are the files. */
export async function stored(page, names, timeout = 30_000) {
	for (const name of [names].flat()) await page.getByText(`${name} is uploaded.`).waitFor({ timeout });
	const form = await page.locator('form').evaluate((form) => {
		const sent = String(new URLSearchParams(new FormData(form)));
		for (const input of form.querySelectorAll('[name="held[]"]')) input.remove(); // what follows is another form
		return sent;
	});
	const answer = await page.request.post(`${facts.panel}save`, { data: form, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
	const [status, ...addresses] = (await answer.text()).split('\n');
	assert.equal(status, 'It is saved.');
	assert.equal(addresses.length, [names].flat().length, addresses.join());
	for (const name of [names].flat()) {
		const item = await page.request.get(addresses.find((address) => address.endsWith(`/${name}`)));
		assert.ok(readFileSync(file(name)).equals(await item.body()), `${name} is not whole`);
	}
}
