// The unfinished uploads: listed with their state, and ended.
import { accessible, announced, assert, facts, focused, logIn, open, run, shot } from './lib.mjs';

const { key, password } = facts.more;

await run(async () => {
	const page = await open({ route: '#/uploads' });
	const list = page.getByRole('list', { name: 'Unfinished uploads' });
	const line = (name) => list.getByRole('listitem').filter({ hasText: name });
	await page.getByRole('heading', { name: 'No unfinished upload' }).waitFor();

	const { token } = await logIn(key, password);
	const headers = { 'Tus-Resumable': '1.0.0', 'Service-Api-Key': key, 'Service-Access-Token': token };
	const address = new URL('/api/upload/file/resumable', facts.panel);
	const create = async (filename, body = undefined, more = '') => {
		const metadata = `filename ${btoa(filename)},alias ${btoa('docs')}${more}`;
		const answer = await fetch(address, {
			method: 'POST', body,
			headers: { ...headers, 'Upload-Length': '2048', 'Upload-Metadata': metadata, ...(body && { 'Content-Type': 'application/offset+octet-stream' }) },
		});
		assert.equal(answer.status, 201);
		return new URL(answer.headers.get('Location'), address);
	};
	const first = await create('report <b>1<b>.txt', 'x'.repeat(1024));
	await create('other.txt');
	await create('held.txt', 'x'.repeat(2048), `,hold ${btoa('600')}`);
	await page.getByRole('button', { name: 'Refresh' }).click();
	await line('report <b>1<b>.txt').getByText('50 %').waitFor();
	await line('report').getByText(key).waitFor();
	await line('report').getByText('docs (files)').waitFor();
	await line('other.txt').getByText('0 %').waitFor();
	await line('held.txt').getByText('2.0 KiB, waits for its form').waitFor();
	await accessible(page, 'unfinished uploads');
	await shot(page, 'listed');

	await page.getByRole('button', { name: 'End the upload of report' }).click();
	await page.getByRole('dialog').getByRole('button', { name: 'End the upload' }).click();
	await announced(page, 'is ended.');
	await line('report').waitFor({ state: 'detached' });
	await line('other.txt').waitFor();
	assert.equal((await fetch(first, { method: 'HEAD', headers })).status, 404);
	await page.getByRole('button', { name: 'End the upload of held' }).click();
	await page.getByRole('dialog').getByRole('button', { name: 'End the upload' }).click();
	await line('held.txt').waitFor({ state: 'detached' });

	// A last page with nothing in it leaves the focus at the status.
	await page.route('**/api/uploads?*', async (route) => {
		const answer = await (await route.fetch({ url: route.request().url().replace(/\?.*/, '') })).json();
		const last = route.request().url().includes('cursor=');
		return route.fulfill({ json: { ...answer, uploads: last ? [] : answer.uploads, next: last ? '' : 'more' } });
	});
	await page.getByRole('button', { name: 'Refresh' }).click();
	await page.getByRole('button', { name: 'Show more' }).press('Enter');
	await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'hidden' });
	assert.equal(await focused(page), '1 upload.');
});
