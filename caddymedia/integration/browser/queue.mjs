// The queue: failures beside their files, sending again, cancelling all, other pages, keyboard, phone.
import { accessible, announced, assert, closedGate, controls, facts, focused, open, run, shot, text, uploading } from './lib.mjs';

const isUpload = (url) => url.pathname.endsWith('/api/upload/file');

await run(async () => {
	await again();
	await cancelled();
	await elsewhere();
	await onPhone();
});

/** What failed is sent again: one, all, and after the server was away. */
async function again() {
	const page = await open({ route: '#/items/file/docs/again' });
	const { button } = controls(page);
	const { choose, line } = uploading(page);
	const keys = [];
	let answer;
	await page.route(isUpload, async (route) => {
		const name = /filename="([^"]+)"/.exec(route.request().postData())[1];
		keys.push([name, route.request().headers()['idempotency-key']]);
		await answer(route, name);
	});
	const fail = (status, message) => (route) => route.fulfill({
		status, json: { success: false, errors: [{ message, filename: '' }] },
	});

	// Refused by the server: the same file is a new request.
	answer = fail(507, 'there is no space left');
	await choose(text('one.txt'), text('two.txt'), text('three.txt'));
	await announced(page, '3 files not stored.');
	await line('two.txt').getByText('there is no space left').waitFor();
	await accessible(page, 'failed uploads');
	await shot(page, 'failed');
	await page.setViewportSize({ width: 390, height: 844 });
	await accessible(page, 'failed uploads on a phone');
	await shot(page, 'failed-phone');
	await page.setViewportSize({ width: 1280, height: 900 });
	answer = fail(415, 'the content is no text');
	await button('Again one.txt').press('Enter');
	await line('one.txt').getByText('the content is no text').waitFor();
	assert.match(await focused(page), /one\.txt/);
	answer = (route) => route.continue();
	await button('Again one.txt').press('Enter');
	await line('one.txt').getByText('Stored as').waitFor();
	const of = (name) => keys.filter(([each]) => each === name).map(([, key]) => key);
	assert.equal(of('one.txt')[0], of('one.txt')[1], 'after a failure of the server the key stays');
	assert.notEqual(of('one.txt')[1], of('one.txt')[2], 'after a refusal the key is another');

	await button('Again: 2 files').press('Enter');
	await announced(page, '2 files stored.');
	await page.getByText('3 of 3 files stored').waitFor();
	assert.equal(await focused(page), '3 of 3 files stored');
	await button('Clear the list').click();

	// An answer is lost: the file is stored once.
	let lost = 0;
	answer = async (route) => {
		if (lost++ > 0) return route.continue();
		await route.fetch();
		return route.abort('connectionreset');
	};
	await uploading(page).into('once');
	await choose(text('lost.txt'));
	await line('lost.txt').getByRole('link', { name: 'once/lost.txt' }).waitFor();
	const found = await (await page.request.get(`${facts.panel}api/items/file/docs?folder=once`)).json();
	assert.equal(found.result.length, 1);
	await button('Clear the list').click();

	// The server cannot store it now: the list says why, and the file is sent again by itself.
	let busy = 0;
	answer = (route) => (busy++ > 0 ? route.continue() : route.fulfill({
		status: 503, headers: { 'Retry-After': '3' },
		json: { success: false, errors: [{ message: 'the storage cannot be reached' }] },
	}));
	await choose(text('later.txt'));
	await line('later.txt').getByText('The server cannot store it now: the storage cannot be reached. Sending it again …').waitFor();
	await line('later.txt').getByText('Stored as').waitFor();
	await button('Clear the list').click();

	// The server is away: the others wait, until they are sent again.
	const session = (url) => url.pathname.endsWith('/api/session');
	await page.route(session, (route) => route.abort());
	answer = (route) => route.abort('connectionrefused');
	await choose(...[1, 2, 3, 4, 5].map((n) => text(`away-${n}.txt`)));
	await announced(page, '3 files not stored. 2 files waiting.');
	await line('away-5.txt').getByText('Waiting').waitFor();
	await page.getByText('The other files wait:').waitFor();
	await accessible(page, 'a stopped queue');
	await shot(page, 'stopped');
	await page.unroute(session);
	answer = (route) => route.continue();
	await button('Again: 5 files').click();
	await announced(page, '5 files stored.');
	await page.context().close();
}

/** Running and waiting files are cancelled at once, and sent again. */
async function cancelled() {
	const page = await open({ route: '#/items/file/docs/cancelled', dark: true });
	const { button } = controls(page);
	const { choose, line } = uploading(page);
	const gate = closedGate();
	await page.route(isUpload, async (route) => {
		await gate.open;
		await route.continue().catch(() => {}); // it is cancelled
	});
	await choose(...Array.from({ length: 30 }, (_, n) => text(`file-${String(n).padStart(2, '0')}.txt`, 2000)));
	await page.getByText('0 of 30 files stored, 3 in progress, 27 waiting, 0 B of 59 KiB sent').waitFor();
	await page.getByText('23 of the files are listed.').waitFor();
	await page.getByRole('progressbar', { name: 'Progress of all files' }).waitFor();
	await accessible(page, 'a queue, dark');
	await shot(page, 'running-dark');
	await button('Cancel all').press('Enter');
	await announced(page, '30 files not stored.');
	await line('file-00.txt').getByText('Cancelled.').waitFor();
	assert.equal(await focused(page), '0 of 30 files stored, 30 not stored');
	gate.go();
	await button('Again: 30 files').press('Enter');
	await announced(page, '30 files stored.');
	await page.getByText('10 of the files are listed').waitFor({ state: 'detached' });
	await shot(page, 'stored-dark');
	await page.context().close();
}

/** Uploads continue on other pages, which show them. */
async function elsewhere() {
	const page = await open({ route: '#/items/file/docs/elsewhere' });
	const { choose, line } = uploading(page);
	const gate = closedGate();
	await page.route(isUpload, async (route) => {
		await gate.open;
		if (route.request().postData().includes('bad.txt')) {
			await route.fulfill({ status: 502, json: { success: false, errors: [{ message: 'the storage failed', filename: '' }] } });
		} else await route.continue();
	});
	await choose(text('good.txt'), text('bad.txt'));
	await line('good.txt').getByText('Cancel').waitFor();
	const note = page.getByRole('complementary', { name: 'Uploads to docs' });
	assert.equal(await note.count(), 0);
	await page.getByRole('link', { name: 'Health', exact: true }).click();
	await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
	await note.getByText('2 uploads in progress').waitFor();
	await accessible(page, 'uploads on another page');
	await shot(page, 'elsewhere');
	gate.go();
	await announced(page, '1 file stored. 1 file not stored.');
	await note.getByText('1 file not stored.').waitFor();
	await note.getByRole('link', { name: 'Show' }).click();
	await line('bad.txt').getByText('the storage failed').waitFor();
	assert.match(page.url(), /#\/items\/file\/docs\/elsewhere$/);
	assert.equal(await note.count(), 0);
	await page.getByRole('list', { name: 'Items' }).getByRole('link', { name: 'good.txt' }).waitFor();
	await page.context().close();
}

/** On a phone the options stay closed, and the progress is shown. */
async function onPhone() {
	const page = await open({ route: '#/items/file/docs/phone', width: 390, height: 844, touch: true });
	const { button } = controls(page);
	const { line } = uploading(page);
	const gate = closedGate();
	await page.route(isUpload, async (route) => {
		await gate.open;
		await route.continue().catch(() => {}); // it is cancelled
	});
	const chooser = page.waitForEvent('filechooser');
	await button('Upload').tap();
	await (await chooser).setFiles(['a.txt', 'b.txt', 'c.txt', 'd.txt'].map((name) => text(name)));
	assert.equal(await page.getByLabel('Into the folder').isVisible(), false);
	await page.getByText(/^0 of 4 files stored, 3 in progress/).waitFor();
	const navigation = await page.getByRole('navigation', { name: 'Pages' }).boundingBox();
	const progress = await page.getByRole('progressbar', { name: 'Progress of all files' }).boundingBox();
	assert.ok(progress.y < navigation.y, 'the progress is on the first screen');
	for (const target of [button('Cancel all'), button('Cancel a.txt')]) {
		const { width, height } = await target.boundingBox();
		assert.ok(width >= 24 && height >= 24);
	}
	await accessible(page, 'uploads on a phone');
	await shot(page, 'phone', false);
	await button('Cancel b.txt').tap();
	await line('b.txt').getByText('Cancelled.').waitFor();
	gate.go();
	await announced(page, '3 files stored. 1 file not stored.');
	await button('Again b.txt').tap();
	await announced(page, '1 file stored.');
	await line('d.txt').getByText('Stored as').waitFor();
	await accessible(page, 'stored files on a phone');
	await shot(page, 'phone-stored', false);
}
