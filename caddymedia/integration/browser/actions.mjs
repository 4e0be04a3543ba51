// Acting on many items and on folders.
import { accessible, announced, assert, facts, focused, open, run, shot, visit } from './lib.mjs';

const base = '#/items/img/content';
const at = (folder) => `${base}/${folder}`;
const bar = (page) => page.getByRole('region', { name: 'Selection' });
const act = (page, name) => bar(page).getByRole('button', { name }).click();
const image = (n) => `image-${String(n).padStart(4, '0')}.jpg`;
const box = (page, n) => page.getByRole('checkbox', { name: `Select ${image(n)}`, exact: true });
const tiles = (page) => page.locator('.grid > li');
const dialog = (page, name) => page.getByRole('dialog', { name });
const confirm = (page, name, button) => dialog(page, name).getByRole('button', { name: button }).click();
const public_ = (filename) => new URL(`/static/img/content/${filename}`, facts.panel).href;
const status = async (filename) => (await fetch(public_(filename))).status;

await run(async () => {
	const page = await open({ route: `${base}/few` });
	await stopped(page);
	await thousand(page);
	await failing(page);
	await oneByKey(page);
	await moving(page);
	await addresses(page);
	await downloading(page);
	await signed(page);
	await folders(page);
	await newFolder(page);
	await onPhone();
});

/** 1,000 items are deleted by one request. */
async function thousand(page) {
	const requests = [];
	page.on('request', (request) => request.method() !== 'GET' && requests.push(request));
	await visit(page, at('all'));
	await box(page, 0).check();
	await act(page, 'Select all shown');
	await act(page, 'Select the rest');
	await bar(page).getByText('1,100 items selected').waitFor();
	for (let n = 0; n < 100; n++) await box(page, n).uncheck();
	await bar(page).getByText('1,000 items selected').waitFor();
	await act(page, 'Delete');
	await dialog(page, 'Delete 1,000 items?').getByText('and 995 more').waitFor();
	await accessible(page, 'the question before a deletion');
	await shot(page, 'delete', false);
	await confirm(page, 'Delete 1,000 items?', 'Delete 1,000 items');
	await announced(page, '1,000 items deleted.');
	assert.equal(requests.length, 1, 'requests for a thousand');
	await bar(page).waitFor({ state: 'hidden' });
	await page.getByText('100 items.').waitFor();
	assert.equal(await status(`all/${image(99)}`), 200);
	assert.equal(await status(`all/${image(100)}`), 404);
	assert.notEqual(await focused(page), '', 'the focus is not lost');
}

/** Stop, and the end of the session, during a deletion, a move and the deletion of a folder. */
async function stopped(page) {
	const api = /\/api\/items\/img\/content/;
	/** Answers changes by a list of functions; the page waits for each. */
	const answers = async (...list) => {
		const seen = [];
		await page.unrouteAll();
		await page.route(api, async (route) => {
			if (route.request().method() !== 'POST') return route.fallback();
			seen.push(route.request());
			return route.fulfill(await list[Math.min(seen.length, list.length) - 1](route.request()));
		});
		return seen;
	};
	const done = (request) => ({ json: { success: true, result: new URLSearchParams(request.postData()).getAll('filename').map((filename) => ({ filename, deleted: true })) } });
	const stop = (name, answer) => async (request) => {
		await dialog(page, name).getByRole('button', { name: 'Stop' }).click();
		await dialog(page, name).getByRole('button', { name: 'Stopping …' }).waitFor();
		return answer(request);
	};
	const close = async (name) => {
		await dialog(page, name).getByRole('button', { name: 'Close' }).last().click();
		await page.waitForFunction(() => !document.querySelector('dialog') && document.activeElement !== document.body);
	};

	const selectAll = async () => {
		await page.goto('about:blank');
		await visit(page, at('all'));
		await box(page, 0).check();
		await act(page, 'Select all shown');
		await act(page, 'Select the rest');
		await bar(page).getByText('1,100 items selected').waitFor();
		await act(page, 'Delete');
		await confirm(page, 'Delete 1,100 items?', 'Delete 1,100 items');
	};
	let requests = await answers(stop('Deleting 1,100 items', done));
	await selectAll();
	await announced(page, '1,000 items deleted.');
	await bar(page).getByText('100 items selected').waitFor();
	assert.equal(requests.length, 1);
	await page.waitForFunction(() => document.activeElement !== document.body);

	requests = await answers(done, () => ({ status: 401, body: '' }));
	await selectAll();
	const refused = dialog(page, '100 of 1,100 items not deleted');
	await refused.getByRole('link', { name: 'Log in again' }).waitFor();
	await shot(page, 'logged-out', false);
	await close('100 of 1,100 items not deleted');
	await bar(page).getByText('100 items selected').waitFor();
	assert.equal(requests.length, 2);

	// A move: those under way end, and the others stay selected.
	const startMove = async () => {
		await page.goto('about:blank');
		await visit(page, at('few'));
		await tiles(page).first().waitFor();
		await page.keyboard.press('Control+a');
		await act(page, 'Move');
		await dialog(page, 'Move 30 items').getByLabel('Folder', { exact: true }).fill('elsewhere');
		await page.keyboard.press('Enter');
	};
	const moved = () => ({ json: { success: true, result: [{ filename: 'elsewhere/a.jpg' }] } });
	let stopping;
	requests = await answers(async () => {
		await (stopping ??= stop('Moving 30 items', () => {})());
		return moved();
	});
	await startMove();
	await dialog(page, '4 of 30 items moved').waitFor();
	await close('4 of 30 items moved');
	await bar(page).getByText('26 items selected').waitFor();
	assert.equal(requests.length, 4);

	requests = await answers(moved, () => ({ status: 503, json: { success: false, errors: [{ message: 'The storage is down.' }] } }), moved);
	await startMove();
	const broken = dialog(page, /^\d of 30 items moved$/);
	await broken.getByText('The storage is down.').waitFor();
	assert.ok(requests.length < 9, `${requests.length} items are tried`);
	await broken.getByRole('heading', { name: `${requests.length - 1} of 30 items moved` }).waitFor();
	await close(/^\d of 30 items moved$/);
	await bar(page).getByText(`${31 - requests.length} items selected`).waitFor();

	// A folder needs some requests.
	const deleteOld = async () => {
		await page.goto('about:blank');
		await visit(page, base);
		await page.getByRole('button', { name: 'Delete folder old' }).click();
		await page.keyboard.type('old');
		await page.keyboard.press('Enter');
	};
	const part = (deleted, more) => () => ({ json: { success: true, result: [], deleted, more } });
	requests = await answers(part(1000, true), stop('Deleting old', part(1000, true)));
	await deleteOld();
	await dialog(page, 'The folder old is not deleted').getByText('2,000 items deleted. You have stopped it.').waitFor();
	await close('The folder old is not deleted');
	assert.equal(requests.length, 2);
	requests = await answers(part(1000, true), part(0, true));
	await deleteOld();
	await dialog(page, 'The folder old is not deleted').getByText('Some items could not be deleted.').waitFor();
	requests = await answers(part(1000, true), part(500, false));
	await deleteOld();
	await announced(page, 'The folder old is deleted, with 1,500 items.');
	assert.equal(requests.length, 2);
	await page.unrouteAll();
	await page.goto('about:blank');
}

/** Items that fail are shown by name, and stay selected. */
async function failing(page) {
	await visit(page, at('few'));
	await box(page, 0).check();
	await box(page, 1).check();
	await page.evaluate(() => fetch('api/items/img/content/few/image-0000.jpg', { method: 'DELETE' }).then((answer) => answer.text()));
	await act(page, 'Delete');
	await confirm(page, 'Delete 2 items?', 'Delete 2 items');
	const result = dialog(page, '1 of 2 items not deleted');
	await result.getByRole('list', { name: 'Failed' }).getByText(`few/${image(0)}`).waitFor();
	await accessible(page, 'a failed deletion');
	await shot(page, 'failed', false);
	await result.getByRole('button', { name: 'Close' }).last().click();
	await bar(page).getByText('1 item selected').waitFor();
	await page.keyboard.press('Escape');
}

/** The key Delete asks, and the focus goes to the next item. */
async function oneByKey(page) {
	await visit(page, at('all'));
	await page.getByRole('link', { name: image(1) }).focus();
	await page.keyboard.press('Delete');
	await confirm(page, `Delete “${image(1)}”?`, 'Delete 1 item');
	await announced(page, `${image(1)} is deleted.`);
	assert.match(await focused(page), new RegExp(image(2)), 'the focus goes to the next one');
}

async function moving(page) {
	// The same folder in other letters: the item stays in the list.
	await visit(page, at('few'));
	await box(page, 3).check();
	await act(page, 'Move');
	await dialog(page, 'Move 1 item').getByLabel('Folder', { exact: true }).fill('FÉW');
	await page.keyboard.press('Enter');
	const same = dialog(page, '1 item moved');
	await same.getByRole('link', { name: 'Open few' }).waitFor();
	await same.getByRole('button', { name: 'Close' }).last().click();
	await box(page, 3).waitFor();
	assert.equal(await status(`few/${image(3)}`), 200);
	await page.goto('about:blank');

	await visit(page, at('few'));
	await box(page, 2).check();
	await box(page, 6).click({ modifiers: ['Shift'] });
	await act(page, 'Move');
	const move = dialog(page, 'Move 5 items');
	const folder = move.getByLabel('Folder', { exact: true });
	assert.equal(await folder.inputValue(), 'few/');
	await move.getByRole('button', { name: 'folder below' }).click();
	assert.equal(await folder.inputValue(), 'few/below/');
	await move.getByRole('button', { name: 'Up: up one folder' }).click();
	await move.getByRole('button', { name: 'Up: up one folder' }).click();
	await move.getByRole('button', { name: 'folder old' }).waitFor();
	await folder.fill('al');
	await move.getByRole('button', { name: 'folder old' }).waitFor({ state: 'hidden' });
	await move.getByRole('button', { name: 'folder all' }).waitFor();
	await accessible(page, 'moving');
	await shot(page, 'move', false);
	await folder.fill('New/Pláce'); // as the library converts it
	await page.keyboard.press('Enter');
	const moved = dialog(page, '5 items moved');
	await moved.waitFor();
	await accessible(page, 'moved items');
	await shot(page, 'moved', false);
	assert.equal(await status(`few/${image(4)}`), 404);
	assert.equal(await status(`new/place/${image(4)}`), 200);
	await moved.getByRole('link', { name: 'Open new/place' }).click();
	await page.getByText('5 items.').waitFor();

	// From a search: they are found under their new names, which are not selected.
	await visit(page, `${at('new')}?search=image-`);
	await page.getByText('Found 5 items.').waitFor();
	await page.keyboard.press('Control+a');
	await act(page, 'Move');
	await dialog(page, 'Move 5 items').getByLabel('Folder', { exact: true }).fill('new/other');
	await page.keyboard.press('Enter');
	await dialog(page, '5 items moved').getByRole('button', { name: 'Close' }).last().click();
	await page.getByRole('link', { name: `other/${image(4)}` }).waitFor();
	assert.equal(await bar(page).count(), 0, 'a selection of old names');

	// To another alias, from a search in which a name occurs twice.
	await visit(page, `${base}?search=${image(0)}`);
	await page.getByText(/^Found \d+ items?\.$/).waitFor();
	const found = await tiles(page).count();
	await page.keyboard.press('Control+a');
	await act(page, 'Move');
	await dialog(page, /^Move/).getByLabel('Library', { exact: true }).selectOption('photos');
	await page.keyboard.press('Tab');
	await dialog(page, /^Move/).getByRole('button', { name: 'Move' }).click();
	const result = dialog(page, `1 of ${found} items moved`);
	await result.getByText('Another selected item has the same name.').first().waitFor();
	await result.getByRole('link', { name: 'Open the top folder of photos' }).click();
	await page.getByText('1 item.').waitFor();
}

async function addresses(page) {
	await visit(page, at('few'));
	await box(page, 7).check();
	await box(page, 9).check();
	await act(page, 'Copy addresses');
	await announced(page, '2 addresses copied.');
	await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
	const [toast, below] = [await page.locator('.toast').boundingBox(), await bar(page).boundingBox()];
	assert.ok(toast.y + toast.height <= below.y, `the message ends at ${toast.y + toast.height}, over the actions at ${below.y}`);
	assert.equal(await page.evaluate(() => navigator.clipboard.readText()),
		[public_(`few/${image(7)}`), public_(`few/${image(9)}`)].join('\n'));
	await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); });
	await act(page, 'Copy addresses');
	const field = dialog(page, 'Addresses').getByLabel('Addresses, one on each line', { exact: true });
	assert.equal((await field.inputValue()).split('\n').length, 2);
	await accessible(page, 'addresses to copy');
	await page.keyboard.press('Escape');
	await page.getByRole('dialog').waitFor({ state: 'detached' });
	await bar(page).getByText('2 items selected').waitFor();
}

async function downloading(page) {
	const begun = page.waitForEvent('download');
	await act(page, 'Download');
	const download = await begun;
	assert.match(download.suggestedFilename(), /\.zip$/);
	await announced(page, 'The download of 2 items begins');
	assert.equal(await download.failure(), null);
	await page.evaluate(() => fetch('api/items/img/content/few/image-0009.jpg', { method: 'DELETE' }).then((answer) => answer.text()));
	await act(page, 'Download');
	const result = dialog(page, 'The download did not start');
	await result.getByText(`Some items are not stored any more, such as "few/${image(9)}". Load the list again.`).waitFor();
	assert.equal(await page.locator('iframe').count(), 1, 'only the frame of the download that has begun is left');
	await result.getByRole('button', { name: 'Close' }).last().click();
}

/** Addresses of private items are signed, if they are not too many. */
async function signed(page) {
	await visit(page, '#/items/img/secret');
	await page.reload(); // with a clipboard again
	await box(page, 0).check();
	await box(page, 1).check();
	await act(page, 'Copy addresses');
	await announced(page, '2 addresses copied. They are valid for an hour.');
	const [first, second] = (await page.evaluate(() => navigator.clipboard.readText())).split('\n');
	assert.equal((await fetch(first)).status, 200);
	assert.equal((await fetch(second)).status, 200);
	assert.equal((await fetch(first.split('?')[0])).status, 403);
	await page.keyboard.press('Control+a');
	await act(page, 'Copy addresses');
	await announced(page, '51 addresses copied. They are private and not signed, so they do not open: at most 50 are signed at once.');
}

async function folders(page) {
	await visit(page, base);
	await page.getByRole('link', { name: 'old', exact: true }).hover();
	await shot(page, 'folders', false);
	await page.getByRole('button', { name: 'Delete folder old' }).click();
	const question = dialog(page, 'Delete the folder “old”?');
	const field = question.getByLabel('Name of the folder');
	await field.fill('ol');
	await page.keyboard.press('Enter');
	await question.getByText('Type old to delete it.').waitFor();
	await accessible(page, 'the question before the deletion of a folder');
	await shot(page, 'delete-folder', false);
	await field.fill('old');
	await page.keyboard.press('Enter');
	await announced(page, 'The folder old is deleted, with 6 items.');
	assert.equal(await page.getByRole('link', { name: 'old', exact: true }).count(), 0);
	assert.notEqual(await focused(page), '');
	assert.equal(await status(`old/older/${image(1)}`), 404);
}

async function newFolder(page) {
	await visit(page, at('few'));
	await page.getByRole('link', { name: 'below', exact: true }).waitFor(); // the page shows few
	await page.getByRole('button', { name: 'New folder' }).click();
	const asked = dialog(page, 'New folder');
	await asked.getByLabel('Name').fill('Žofie & friends');
	await asked.getByText('It is named zofie-friends.').waitFor();
	await accessible(page, 'a new folder');
	await shot(page, 'new-folder', false);
	await page.keyboard.press('Enter');
	await page.getByText('This folder appears with its first item.').waitFor();
	await page.getByLabel('Files to upload').setInputFiles({ name: 'note.jpg', mimeType: 'image/jpeg', buffer: Buffer.from(await (await fetch(public_(`few/${image(7)}`))).arrayBuffer()) });
	await page.getByText('1 item.').waitFor();
	assert.match(page.url(), /few\/zofie-friends$/);
	assert.equal(await status('few/zofie-friends/note.jpg'), 200);
}

async function onPhone() {
	const page = await open({ route: `${base}/few`, width: 390, height: 844, touch: true, dark: true });
	await page.getByRole('button', { name: 'Delete folder below' }).waitFor();
	await box(page, 10).tap();
	await bar(page).getByRole('button', { name: 'Move' }).tap();
	await dialog(page, 'Move 1 item').getByLabel('Folder', { exact: true }).fill('all');
	await accessible(page, 'moving on a phone');
	await shot(page, 'move-phone', false);
	await dialog(page, 'Move 1 item').getByRole('button', { name: 'Cancel' }).tap();
	await bar(page).getByRole('button', { name: 'Delete' }).tap();
	await shot(page, 'delete-phone', false);
	await dialog(page, /^Delete/).getByRole('button', { name: 'Delete 1 item' }).tap();
	await announced(page, `${image(10)} is deleted.`);
	await page.getByRole('button', { name: 'Delete folder below' }).tap();
	await shot(page, 'delete-folder-phone', false);
	await accessible(page, 'the deletion of a folder on a phone');
}
