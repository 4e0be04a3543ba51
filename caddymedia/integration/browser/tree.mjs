// Folders: dropped from the desktop, and chosen; stored with their trees, ten thousand files too.
import path from 'node:path';
import { accessible, announced, assert, facts, focused, open, run, shot, uploading } from './lib.mjs';

const { folder, many } = facts.more;

await run(async () => {
	const page = await open({ route: '#/items/file/docs' });
	const button = (name) => page.getByRole('button', { name });
	const { line } = uploading(page);
	const stored = async (name) => (await page.request.get(`${facts.panel}api/items/file/docs/${name}`)).status();

	// A folder and a file are dropped on a sub folder.
	await uploading(page).into('trips');
	await drag(page, ['holiday', 'single.txt']);
	await announced(page, '3 files stored. 2 files not stored.');
	for (const name of ['trips/single.txt', 'trips/holiday/plan.txt', 'trips/holiday/day-one/notes.txt']) {
		await line(name.split('/').at(-1)).getByRole('link', { name }).waitFor();
		assert.equal(await stored(name), 200);
	}
	await line('program.exe').getByText('.exe is not accepted; files may be txt').waitFor();
	await line('lost.txt').getByText('the sub folder has more than 16 levels').waitFor();
	assert.equal(await button('Again holiday/program.exe').count(), 0, 'it would be refused again');
	await page.getByText('3 hidden files left out.').waitFor();
	await page.getByText('3 of 5 files stored, 2 not stored').waitFor();
	assert.match(page.url(), /#\/items\/file\/docs\/trips$/, 'the folder of all of them is shown');
	await page.getByRole('link', { name: 'holiday', exact: true }).waitFor();
	await accessible(page, 'a dropped tree');
	await shot(page, 'dropped');
	await button('Clear the list').press('Enter');
	await line('plan.txt').waitFor({ state: 'detached' });

	// A folder is chosen with the keyboard; without a sub folder its tree begins at the root.
	await page.getByRole('navigation', { name: 'Folder' }).getByRole('link', { name: 'docs' }).click();
	await page.getByText('1 folder.', { exact: true }).waitFor();
	const chooser = page.waitForEvent('filechooser');
	await uploading(page).options();
	await button('Choose a folder').focus();
	await page.keyboard.press('Enter');
	await (await chooser).setFiles(path.join(folder, 'holiday'));
	await announced(page, '2 files stored. 2 files not stored.');
	assert.equal(await stored('holiday/day-one/notes.txt'), 200);
	await page.getByText('3 hidden files left out.').waitFor();
	assert.match(page.url(), /#\/items\/file\/docs\/holiday$/);
	await button('Clear the list').click();

	// Of ten thousand files few have a row, and the page stays usable while they are read and sent.
	await page.evaluate(() => {
		globalThis.longest = 0;
		new PerformanceObserver((list) => {
			for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
		}).observe({ type: 'longtask' });
	});
	let loads = 0;
	page.on('request', (request) => { loads += request.url().includes('/api/items/') ? 1 : 0; });
	const began = Date.now();
	await drag(page, ['many']);
	await page.getByText(new RegExp(`of ${many.toLocaleString('en')} files stored, `)).waitFor({ timeout: 480_000 });
	const read = Date.now() - began;
	await page.waitForFunction(() => document.querySelectorAll('.uploads .good').length === 3);
	const longest = await page.evaluate(() => globalThis.longest);
	const rows = await page.getByRole('list', { name: 'Uploads' }).getByRole('listitem').count();
	assert.ok(rows <= 30, `${rows} rows`);
	await accessible(page, 'ten thousand files');
	await shot(page, 'many', false);
	await page.setViewportSize({ width: 390, height: 844 });
	await page.getByText('of the files are listed').scrollIntoViewIfNeeded();
	await shot(page, 'many-phone', false);
	await page.setViewportSize({ width: 1280, height: 900 });
	await button('Cancel all').press('Enter');
	await announced(page, 'files not stored.');
	assert.notEqual(await focused(page), '', 'the button is gone, the focus is not');
	assert.ok(loads < 5, `the list was loaded ${loads} times`);
	console.log(`${many} files: read in ${read} ms, ended in ${Date.now() - began} ms,`,
		`longest task ${longest} ms, ${rows} rows`);

	// Cancelled while the folder is read: no more is added.
	await button('Clear the list').press('Enter');
	await drag(page, ['many']);
	await page.getByText('still reading the folder').waitFor();
	await button('Cancel all').press('Enter');
	await page.getByText(/^\d+ of [\d,]+ files stored, [\d,]+ not stored$/).waitFor();
	assert.equal(await page.getByText(`of ${many.toLocaleString('en')} files`).count(), 0);
});

/** Drags files and folders from the desktop onto the page. */
async function drag(page, names) {
	const session = await page.context().newCDPSession(page);
	await page.evaluate(() => scrollTo(0, 0));
	const { x, y } = await page.getByRole('heading', { level: 1 }).boundingBox();
	const data = { items: [], files: names.map((name) => path.join(folder, name)), dragOperationsMask: 1 };
	for (const type of ['dragEnter', 'dragOver', 'drop']) {
		await session.send('Input.dispatchDragEvent', { type, x: x + 5, y: y + 5, data });
	}
}
