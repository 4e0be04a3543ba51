// A large file whose connection is cut in the middle is stored whole.
import { announced, assert, closedGate, facts, open, run, shot, text, uploading } from './lib.mjs';

const { size } = facts.more;

await run(async () => {
	const page = await open({ route: '#/items/file/content' });
	const { choose, line } = uploading(page);
	const offsets = [];
	const paths = [];
	page.on('request', (request) => {
		paths.push(new URL(request.url()).pathname);
		if (request.method() === 'PATCH') offsets.push(Number(request.headers()['upload-offset']));
	});

	await uploading(page).into('large');
	await choose(text('large.txt', size));
	await announced(page, '1 file stored.');
	await line('large.txt').getByRole('link', { name: 'large/large.txt' }).waitFor();
	assert.ok(offsets.length > 1 && offsets[0] === 0 && offsets.at(-1) > 0, `offsets ${offsets}`);
	const found = await page.request.get(`${facts.panel}api/items/file/content/large/large.txt`);
	assert.equal((await found.json()).result[0].size, size);
	await shot(page, 'stored');

	// A cancelled one leaves nothing.
	const gate = closedGate();
	await page.route('**/resumable/*', async (route) => {
		if (route.request().method() === 'PATCH') await gate.open;
		await route.continue().catch(() => {}); // it is cancelled
	});
	const begun = page.waitForRequest((request) => request.method() === 'PATCH');
	await choose(text('cancelled.txt', size));
	await begun;
	const removed = page.waitForResponse((response) => response.request().method() === 'DELETE');
	await page.getByRole('button', { name: 'Cancel cancelled.txt' }).click();
	gate.go();
	assert.equal((await removed).status(), 204);

	// Small files stay in a form.
	paths.length = 0;
	await choose(text('small.txt'));
	await announced(page, '1 file stored.');
	assert.ok(paths.some((path) => path.endsWith('/api/upload/file')) && !paths.some((path) => path.includes('resumable')));
});
