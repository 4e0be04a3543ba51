// Slow answers about an item: they arrive when the dialog is closed or shows another item.
import { accessible, announced, assert, closed, drop, facts, focused, item, open, run, shot, uploading, visit } from './lib.mjs';

const jpeg = Buffer.from(facts.more.jpeg, 'base64');
const listed = (page, name) => page.getByRole('main').getByRole('link', { name: new RegExp(`\\b${name}`), includeHidden: true });

await run(async () => {
	const page = await open({ route: '#/items/img/photos' });
	await renamedLate(page);
	await deletedLate(page);
	await cancelledLate(page);
	await storageDown(page);
	await loggedOut(page);
	await uploadEnds(page);
});

/** Holds the requests of a method until the returned function is called; arrived is a promise of the first. */
async function hold(page, method, part = '') {
	let release;
	let reached;
	const gate = new Promise((done) => { release = done; });
	const arrived = new Promise((done) => { reached = done; });
	const handler = async (route) => {
		if (route.request().method() !== method || !route.request().url().includes(part)) return route.fallback();
		reached();
		await gate;
		return route.continue().catch(() => {});
	};
	const routes = /\/api\/(items|upload)\//;
	await page.route(routes, handler);
	return { arrived, release: async () => { release(); await page.unroute(routes, handler); } };
}

async function show(page, name) {
	await listed(page, name).click();
	const dialog = item(page, name);
	await dialog.getByRole('link', { name: 'Open', exact: true }).waitFor();
	return dialog;
}

/** A rename that ends after its dialogs were closed is in the list, and the address stays. */
async function renamedLate(page) {
	const dialog = await show(page, 'a.jpg');
	await dialog.getByRole('button', { name: 'Rename' }).click();
	const { arrived, release } = await hold(page, 'POST');
	await item(page, 'Rename a.jpg').getByLabel('Name', { exact: true }).fill('late.jpg');
	await page.keyboard.press('Enter');
	await arrived;
	await item(page, 'Rename a.jpg').getByRole('button', { name: 'Cancel' }).click();
	await page.keyboard.press('Escape');
	await closed(page);
	await release();
	await announced(page, 'Renamed to late.jpg.');
	await listed(page, 'late.jpg').waitFor();
	assert.equal(await listed(page, 'a.jpg').count(), 0);
	assert.equal(await page.evaluate(() => location.hash), '#/items/img/photos');
}

/** A deletion that ends after the dialog was closed removes the item from the list. */
async function deletedLate(page) {
	const dialog = await show(page, 'b.jpg');
	const { arrived, release } = await hold(page, 'DELETE');
	await dialog.getByRole('button', { name: 'Delete' }).click();
	await item(page, 'Delete “b.jpg”?').getByRole('button', { name: 'Delete' }).click();
	await arrived;
	await page.keyboard.press('Escape');
	await closed(page);
	await release();
	await announced(page, 'b.jpg is deleted.');
	await listed(page, 'b.jpg').waitFor({ state: 'detached' });
	assert.notEqual(await focused(page), '');
}

/** A replacement that is cancelled when the server has the file already is shown as it is. */
async function cancelledLate(page) {
	const dialog = await show(page, 'c.jpg');
	await dialog.getByText('322 × 240').waitFor();
	await page.route('**/api/items/**', async (route) => {
		if (route.request().method() !== 'PUT') return route.fallback();
		await route.fetch(); // the answer never arrives
		await item(page, 'Replacing c.jpg').getByRole('button', { name: 'Cancel' }).click();
		return route.abort().catch(() => {});
	}, { times: 1 });
	const [chooser] = await Promise.all([page.waitForEvent('filechooser'), dialog.getByRole('button', { name: 'Replace' }).click()]);
	await chooser.setFiles({ name: 'c.jpg', mimeType: 'image/jpeg', buffer: jpeg });
	await dialog.getByRole('status').getByText('Replacing c.jpg was cancelled. The panel shows what the server has now.').waitFor();
	await dialog.getByText('500 × 100').waitFor();
	await page.keyboard.press('Escape');
	await closed(page);

	// Another page ends it, and keeps its own warning about input.
	await show(page, 'd.jpg');
	const { arrived, release } = await hold(page, 'PUT');
	const [again] = await Promise.all([page.waitForEvent('filechooser'), item(page, 'd.jpg').getByRole('button', { name: 'Replace' }).click()]);
	await again.setFiles({ name: 'd.jpg', mimeType: 'image/jpeg', buffer: jpeg });
	await arrived;
	await page.evaluate(() => { location.hash = '#/accounts'; });
	await item(page, 'Leave without saving?').getByRole('button', { name: 'Leave' }).click();
	await page.getByRole('heading', { level: 1, name: 'Accounts' }).waitFor();
	await release();
	await visit(page, '#/items/img/photos');
	await show(page, 'd.jpg').then((shown) => shown.getByText('323 × 240').waitFor());
	await page.keyboard.press('Escape');
	await closed(page);
}

/** A preview that the storage refuses is no fault of the browser. */
async function storageDown(page) {
	await page.route('**/api/preview/**', (route) => route.fulfill({ status: 502, contentType: 'application/json', body: '{"error":"The storage is unreachable."}' }));
	const dialog = await show(page, 'late.jpg'); // no cache has its preview
	await dialog.getByText('The storage is unreachable.').waitFor();
	await accessible(page, 'a preview without its storage');
	await shot(page, 'down', false);
	await page.unroute('**/api/preview/**');
	await page.keyboard.press('Escape');
	await closed(page);
}

/** The new name stays when the session ends meanwhile. */
async function loggedOut(page) {
	const dialog = await show(page, 'd.jpg');
	await dialog.getByRole('button', { name: 'Rename' }).click();
	const form = item(page, 'Rename d.jpg');
	await form.getByLabel('Name', { exact: true }).fill('kept.jpg');
	const refuse = (route) => route.fulfill({ status: 401, contentType: 'application/json', body: '{}' });
	await page.route('**/api/items/**', refuse);
	await page.keyboard.press('Enter');
	const [tab] = await Promise.all([page.waitForEvent('popup'), form.getByRole('link', { name: 'Log in again' }).click()]);
	await tab.getByRole('heading', { level: 1 }).waitFor();
	await tab.close();
	await page.unroute('**/api/items/**', refuse);
	assert.equal(await form.getByLabel('Name', { exact: true }).inputValue(), 'kept.jpg');
	await form.getByRole('button', { name: 'Rename' }).click();
	await item(page, 'kept.jpg').getByRole('status').getByText('Renamed to kept.jpg.').waitFor();
	await page.keyboard.press('Escape');
	await closed(page);
	assert.match(await focused(page), /kept\.jpg/);
}

/** The end of an upload takes the focus from nothing, and a list without the file is not loaded again. */
async function uploadEnds(page) {
	await uploading(page).into('/');
	await listed(page, 'c.jpg').focus();
	await drop(page, page.getByRole('main'), [{ name: 'new.jpg', type: 'image/jpeg', content: facts.more.jpeg }]);
	await announced(page, '1 file stored.');
	await listed(page, 'new.jpg').first().waitFor();
	await page.waitForFunction(() => !document.querySelector('.listing[aria-busy]'));
	assert.match(await focused(page), /c\.jpg/);

	// In a folder that has not got the file, nothing happens.
	let loads = 0;
	const { arrived, release } = await hold(page, 'POST');
	await uploading(page).into('/');
	await drop(page, page.getByRole('main'), [{ name: 'newer.jpg', type: 'image/jpeg', content: facts.more.jpeg }]);
	await arrived;
	await page.evaluate(() => { location.hash = '#/items/img/photos/other'; });
	await page.getByRole('heading', { name: 'Nothing here yet' }).waitFor();
	page.on('request', (request) => { loads += request.url().includes('/api/items/img/photos?'); });
	await release();
	await announced(page, '1 file stored.');
	await page.evaluate(() => new Promise(requestAnimationFrame));
	assert.equal(loads, 0);
}
