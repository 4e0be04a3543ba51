// Uploads with the cookie of a user: by a page of the site, by a form of an origin that cors names,
// and by forms and scripts of another site.
import { assert, facts, open, run } from './lib.mjs';

const { evil, named } = facts.more;

/** Sends a form of a page to the service, and returns the status of the answer. */
async function submit(page, origin, name) {
	await page.goto(`${origin}/?service=${encodeURIComponent(facts.service)}`);
	await page.getByLabel('File').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from('x') });
	const [response] = await Promise.all([
		page.waitForResponse((r) => r.url().includes('/api/upload/file')),
		page.getByRole('button', { name: 'Upload' }).click(),
	]);
	const sent = await response.request().allHeaders();
	assert.match(sent.cookie ?? '', /session=alice/); // otherwise the test shows nothing
	return response.status();
}

/** Uploads by a script of the page, and returns the status, or the name of the error. */
const send = (page, name, mode) => page.evaluate(async ([address, name, mode]) => {
	const body = new FormData();
	body.append('files[]', new Blob(['x']), name);
	try {
		return (await fetch(address, { method: 'POST', body, credentials: 'include', mode })).status;
	} catch (error) {
		return error.name;
	}
}, [`${facts.service}/api/upload/file`, name, mode]);

await run(async () => {
	const page = await (await open()).context().newPage(); // which may send requests to other hosts
	await page.context().addCookies([{ name: 'session', value: 'alice', url: facts.service }]);
	await page.goto(facts.service);
	assert.equal(await send(page, 'own.txt', 'same-origin'), 200);
	assert.equal(await submit(page, evil, 'evil-form.txt'), 403);
	await page.goto(`${evil}/`);
	assert.equal(await send(page, 'evil-script.txt', 'no-cors'), 0);
	assert.equal(await send(page, 'evil-cors.txt', 'cors'), 'TypeError');
	assert.equal(await submit(page, named, 'named.txt'), 200);
});
