// Uploads images on the documented page of another site, if the service allows that.
import { assert, facts, open, run } from './lib.mjs';

const { refused, good, bad } = facts.more;
const line = (page, n) => page.locator('li').nth(n);

/** Uploads a file by choosing it, and returns the line that the page shows. */
async function upload(page, { name, content }) {
	const n = await page.locator('li').count();
	await page.getByLabel('Images').setInputFiles({ name, mimeType: 'image/jpeg', buffer: Buffer.from(content, 'base64') });
	await line(page, n).waitFor();
	return line(page, n).innerText();
}

/** Fetches a path of the service in the page: {status, type, header}, or the name of the error. */
const get = (page, path, init) => page.evaluate(async ([address, init]) => {
	try {
		const response = await fetch(address, init);
		return { status: response.status, header: Object.fromEntries(response.headers), text: await response.text() };
	} catch (error) {
		return error.name;
	}
}, [facts.service + path, init]);

await run(async () => {
	const page = await open();
	if (refused) {
		assert.equal(await upload(page, good), 'Failed to fetch');
		assert.equal(await get(page, '/static/img/content/none.jpg'), 'TypeError');
		return;
	}
	assert.equal(await upload(page, good), good.name);
	assert.match(await page.locator('[name="held[]"]').getAttribute('value'), /^[\w-]{22,}$/);
	assert.equal(await upload(page, bad), bad.message);
	assert.equal(await page.locator('[name="held[]"]').count(), 1);

	const item = await get(page, facts.more.item, { headers: { Range: 'bytes=0-3,8-9', 'If-None-Match': '"x"' } });
	assert.equal(item.status, 200);
	assert.match(item.header.etag, /^"/);
	assert.equal(item.header['accept-ranges'], 'bytes');
	assert.equal((await get(page, '/static/img/content/none.jpg')).status, 404);

	const headers = { HTTP_SERVICE_API_KEY: 'x', HTTP_SERVICE_ACCESS_TOKEN: 'x', 'X-Request-ID': 'x', 'Upload-Offset': '0' };
	const stranger = await get(page, '/api/upload/image', { method: 'POST', headers });
	assert.equal(stranger.status, 401);
	assert.equal(JSON.parse(stranger.text).success, false);
	// Cookies are refused, headers of the page's other tools are not: Sentry, OpenTelemetry, axios.
	assert.equal(await get(page, '/api/upload/image', { method: 'POST', credentials: 'include' }), 'TypeError');
	for (const added of [
		{ 'sentry-trace': '771a43a4192642f0b136d5159a501700-7e2f5f3d6c1b4a09-1', baggage: 'sentry-environment=production' },
		{ traceparent: '00-771a43a4192642f0b136d5159a501700-7e2f5f3d6c1b4a09-01', tracestate: 'vendor=1' },
		{ 'X-Requested-With': 'XMLHttpRequest', 'X-XSRF-TOKEN': 'abc' },
	]) {
		await page.evaluate((headers) => {
			const send = window.sent ??= window.fetch;
			window.fetch = (address, init) => send(address, { ...init, headers: { ...init.headers, ...headers } });
		}, added);
		assert.equal(await upload(page, good), good.name, `an upload with ${Object.keys(added)}`);
	}
});
