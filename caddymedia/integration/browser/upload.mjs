// Uploading: several files, refused ones, progress, cancelling, sub folders, drops.
import { accessible, announced, assert, closedGate, controls, drop, facts, focused, open, run, shot, text, uploading } from './lib.mjs';

await run(async () => {
	const page = await open({ route: '#/items/file/docs' });
	const { button } = controls(page);
	const { choose, line } = uploading(page);
	const items = page.getByRole('list', { name: 'Items' });
	const slow = await slower(page);

	// Several at once, one of which is refused; the stored ones are shown.
	await uploading(page).into('first');
	await choose(text('one.txt'), text('program.exe'), text('two.txt'));
	await announced(page, '2 files stored. 1 file not stored. program.exe: .exe is not accepted');
	await line('program.exe').getByText(/\.exe/).last().waitFor();
	for (const name of ['one.txt', 'two.txt']) {
		await line(name).getByRole('link', { name: `first/${name}`, exact: true }).waitFor();
		await items.getByRole('link', { name }).waitFor();
	}
	await accessible(page, 'uploads that have ended');
	await shot(page, 'ended');
	await button('Clear the list').click();
	await line('one.txt').waitFor({ state: 'detached' });
	assert.equal(await focused(page), 'Upload options', 'the focus stays in the upload area');

	// A large file is refused with the message of the server.
	await choose(text('large.txt', 3 << 20));
	await line('large.txt').getByText(/larger than/).waitFor();
	await announced(page, '1 file not stored.');

	// After an upload to a sub folder the page shows that folder.
	await uploading(page).into('reports/new');
	await choose(text('three.txt'));
	await items.getByRole('link', { name: 'three.txt' }).waitFor();
	assert.match(page.url(), /#\/items\/file\/docs\/reports\/new$/);
	assert.equal(await page.getByLabel('Into the folder').inputValue(), 'reports/new');

	// Progress is shown; running and waiting uploads are cancelled.
	await slow(true);
	const names = ['slow-1.txt', 'slow-2.txt', 'slow-3.txt', 'slow-4.txt'];
	await choose(...names.map((name) => text(name, 1 << 20)));
	await page.waitForFunction(() => [...document.querySelectorAll('progress')].some(({ value }) => value > 0 && value < 100));
	await line('slow-4.txt').getByText('Waiting').waitFor();
	await accessible(page, 'uploads under way');
	await shot(page, 'under-way');
	for (const name of names.toReversed()) {
		await button(`Cancel ${name}`).press('Enter');
		await line(name).getByText('Cancelled.').waitFor();
		assert.match(await focused(page), new RegExp(name), 'the button is gone, the focus is not');
	}
	await announced(page, '4 files not stored.');
	const found = await page.request.get(`${facts.panel}api/items/file/docs?search=slow-`);
	assert.deepEqual((await found.json()).result, []);

	// An upload in progress survives a change of the configuration.
	await choose(text('lasting.txt', 1 << 19));
	await page.waitForFunction(() => document.querySelector('progress')?.value > 0);
	const other = await open({ route: '#/aliases/img/content' });
	await other.getByLabel('WebP', { exact: true }).check();
	await other.getByRole('button', { name: 'Save', exact: true }).click();
	await other.getByRole('heading', { level: 1, name: 'Aliases' }).waitFor();
	await slow(false);
	await items.getByRole('link', { name: 'lasting.txt' }).waitFor();

	// A user who has moved on stays there.
	const gate = closedGate();
	await page.route('**/api/upload/**', async (route) => {
		await gate.open;
		await route.continue();
	});
	await choose(text('later.txt'));
	await line('later.txt').getByText('Cancel').waitFor();
	await page.getByRole('navigation', { name: 'Folder' }).getByRole('link', { name: 'docs' }).click();
	await page.getByRole('link', { name: 'reports', exact: true }).waitFor();
	gate.go();
	await announced(page, '1 file stored.');
	await line('later.txt').getByRole('link', { name: 'reports/new/later.txt' }).waitFor();
	assert.match(page.url(), /#\/items\/file\/docs$/);

	// Dropped anywhere on the page; text is ignored.
	const heading = page.getByRole('heading', { level: 1, name: 'Items' });
	await uploading(page).into('dropped');
	await drop(page, heading, [{ name: 'four.txt', type: 'text/plain', content: btoa('x') }]);
	await items.getByRole('link', { name: 'four.txt' }).waitFor();
	await drop(page, page.getByLabel('Into the folder'), []);
	await line('four.txt').waitFor();
	assert.ok(await button('Clear the list').isVisible());
});

/** Throttles uploads to the server, or not. */
async function slower(page) {
	const session = await page.context().newCDPSession(page);
	await session.send('Network.enable');
	return (on) => session.send('Network.emulateNetworkConditions', {
		offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: on ? 100_000 : -1,
	});
}
